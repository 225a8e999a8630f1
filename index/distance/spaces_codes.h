// Spaces over 4- and 8-bit codes, on a target's integer kernels. Included inside a target's namespace after Q4Sum, Q4Sum4,
// Q8Sum, Q8Sum4 (sums of unsigned codes times signed query bytes) and quant_inl.h.
//
// A code c stands for (2c - levels + 1) * scale, a query byte q for q * query.factor (both of unit vectors), so
//   <query, row> ~ (2 * sum(q c) - (levels - 1) * sum(q)) * scale * factor.
// Rows of spaces that are not of unit length end with the row's norm.

template <bool kFour>
struct CodeCosine {
  static constexpr uint32_t kExpand = 2;
  static constexpr uint32_t kPrefetchLines = 64;
  static constexpr float kLevelsLessOne = kFour ? 15.0f : 255.0f;

  static uint32_t CodeBytes(const SpaceParams& p) { return kFour ? p.length / 2 : p.length; }

  HOTKV_INLINE static float Scaled(const SpaceParams& p,
                                                           const QueryView& q, int32_t sum) {
    return (2.0f * static_cast<float>(sum) - kLevelsLessOne * q.sum) * (p.scale * q.factor);
  }
  HOTKV_INLINE static float Cosine(const SpaceParams& p,
                                                           const QueryView& q, const char* row) {
    const auto* codes = reinterpret_cast<const uint8_t*>(row);
    const auto* query = static_cast<const int8_t*>(q.data);
    return Scaled(p, q, kFour ? Q4Sum(query, codes, p.length) : Q8Sum(query, codes, p.length));
  }
  HOTKV_INLINE static void Cosine4(const SpaceParams& p,
                                                           const QueryView& q,
                                                           const char* const* rows, float* out) {
    const auto* query = static_cast<const int8_t*>(q.data);
    // Pointers of another type, not a cast of the array: the compiler may take stores to `rows` for
    // stores to something else and leave them out, and GCC 12 at -O3 did.
    const uint8_t* codes[4];
    for (int i = 0; i < 4; ++i) codes[i] = reinterpret_cast<const uint8_t*>(rows[i]);
    int32_t sums[4];
    if (kFour) {
      Q4Sum4(query, codes, p.length, sums);
    } else {
      Q8Sum4(query, codes, p.length, sums);
    }
    for (int i = 0; i < 4; ++i) out[i] = Scaled(p, q, sums[i]);
  }
  static QueryView FromCodes(const SpaceParams& p, const char* row, void* buffer) {
    const auto* codes = reinterpret_cast<const uint8_t*>(row);
    auto* bytes = static_cast<int8_t*>(buffer);
    QueryView query;
    query.data = buffer;
    query.sum = static_cast<float>(kFour ? DecodeQ4(codes, p.length, bytes)
                                         : DecodeQ8(codes, p.length, bytes));
    query.factor = kFour ? p.scale : 2 * p.scale;
    return query;
  }
};

HOTKV_INLINE float NormOf(const char* row, uint32_t code_bytes) {
  float norm;
  __builtin_memcpy(&norm, row + code_bytes, sizeof(norm));
  return norm;
}

template <bool kFour>
struct CodeUnitSpace : CodeCosine<kFour> {
  using Base = CodeCosine<kFour>;
  static float One(const SpaceParams& p, const QueryView& q, const char* row) {
    return -Base::Cosine(p, q, row);
  }
  static void Batch4(const SpaceParams& p, const QueryView& q, const char* const* rows, float* out) {
    Base::Cosine4(p, q, rows, out);
    for (int i = 0; i < 4; ++i) out[i] = -out[i];
  }
  static QueryView FromRow(const SpaceParams& p, const char* row, void* buffer) {
    return Base::FromCodes(p, row, buffer);
  }
};

template <bool kFour, bool kL2>
struct CodeNormSpace : CodeCosine<kFour> {
  using Base = CodeCosine<kFour>;
  HOTKV_INLINE static float Finish(const QueryView& q, float cosine,
                                                           float norm) {
    const float dot = cosine * norm * q.norm;
    return kL2 ? q.norm * q.norm + norm * norm - 2 * dot : -dot;
  }
  static float One(const SpaceParams& p, const QueryView& q, const char* row) {
    return Finish(q, Base::Cosine(p, q, row), NormOf(row, Base::CodeBytes(p)));
  }
  static void Batch4(const SpaceParams& p, const QueryView& q, const char* const* rows, float* out) {
    Base::Cosine4(p, q, rows, out);
    for (int i = 0; i < 4; ++i) out[i] = Finish(q, out[i], NormOf(rows[i], Base::CodeBytes(p)));
  }
  static QueryView FromRow(const SpaceParams& p, const char* row, void* buffer) {
    QueryView query = Base::FromCodes(p, row, buffer);
    query.norm = NormOf(row, Base::CodeBytes(p));
    return query;
  }
};
