// Spaces over 1-, 4- and 8-bit codes, on a target's integer kernels. Included inside a target's namespace after Q4Sum,
// Q4Sum4, Q8Sum, Q8Sum4 (sums of unsigned codes times signed query bytes) and quant_inl.h.
//
// A code c stands for (2c - levels + 1) * scale, a query byte q for q * query.factor (both of unit vectors), so
//   <query, row> ~ (2 * sum(q c) - (levels - 1) * sum(q)) * scale * factor.
// Rows of spaces that are not of unit length end with the row's norm.
//
// A row of bits has the signs s of a unit vector x, and 1 / <x, s> behind them, which makes <q, s> times it an unbiased
// estimate of <q, x> (Gao and Long, "RaBitQ", 2024).

template <bool kFour>
struct CodeCosine {
  static constexpr uint32_t kExpand = 2;
  static constexpr uint32_t kPrefetchLines = 64;
  static constexpr float kLevelsLessOne = kFour ? 15.0f : 255.0f;

  static uint32_t NormAt(const SpaceParams& p) { return kFour ? p.length / 2 : p.length; }

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

HOTKV_INLINE float FloatAt(const char* row, uint32_t at) {
  float value;
  __builtin_memcpy(&value, row + at, sizeof(value));
  return value;
}

struct BinCosine {
  static constexpr uint32_t kExpand = 2;
  static constexpr uint32_t kPrefetchLines = 64;
  // Products of two codes are too large the nearer their vectors are (an arc sine); this is right at a cosine of 0.8, where
  // a graph's neighbours lie.
  static constexpr float kPairStretch = 0.87f;

  static uint32_t ScaleAt(const SpaceParams& p) { return p.length / 8; }
  static uint32_t NormAt(const SpaceParams& p) {
    return ScaleAt(p) + static_cast<uint32_t>(sizeof(float));
  }
  HOTKV_INLINE static float Scaled(const SpaceParams& p, const QueryView& q, const char* row,
                                   int32_t sum) {
    return (2.0f * static_cast<float>(sum) - q.sum) * (FloatAt(row, ScaleAt(p)) * q.factor);
  }
  HOTKV_INLINE static float Cosine(const SpaceParams& p, const QueryView& q, const char* row) {
    const auto* query = static_cast<const int8_t*>(q.data);
    return Scaled(p, q, row, BinSum(query, reinterpret_cast<const uint8_t*>(row), p.length));
  }
  HOTKV_INLINE static void Cosine4(const SpaceParams& p, const QueryView& q,
                                   const char* const* rows, float* out) {
    const uint8_t* bits[4];  // as in CodeCosine
    for (int i = 0; i < 4; ++i) bits[i] = reinterpret_cast<const uint8_t*>(rows[i]);
    int32_t sums[4];
    BinSum4(static_cast<const int8_t*>(q.data), bits, p.length, sums);
    for (int i = 0; i < 4; ++i) out[i] = Scaled(p, q, rows[i], sums[i]);
  }
  static QueryView FromCodes(const SpaceParams& p, const char* row, void* buffer) {
    QueryView query;
    query.data = buffer;
    query.sum = static_cast<float>(DecodeBin(reinterpret_cast<const uint8_t*>(row), p.length,
                                             static_cast<int8_t*>(buffer)));
    query.factor = kPairStretch * FloatAt(row, ScaleAt(p));
    return query;
  }
};

template <typename Base>
struct UnitSpace : Base {
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

template <typename Base, bool kL2>
struct NormSpace : Base {
  HOTKV_INLINE static float Finish(const QueryView& q, float cosine, float norm) {
    const float dot = cosine * norm * q.norm;
    return kL2 ? q.norm * q.norm + norm * norm - 2 * dot : -dot;
  }
  static float One(const SpaceParams& p, const QueryView& q, const char* row) {
    return Finish(q, Base::Cosine(p, q, row), FloatAt(row, Base::NormAt(p)));
  }
  static void Batch4(const SpaceParams& p, const QueryView& q, const char* const* rows, float* out) {
    Base::Cosine4(p, q, rows, out);
    for (int i = 0; i < 4; ++i) out[i] = Finish(q, out[i], FloatAt(rows[i], Base::NormAt(p)));
  }
  static QueryView FromRow(const SpaceParams& p, const char* row, void* buffer) {
    QueryView query = Base::FromCodes(p, row, buffer);
    query.norm = FloatAt(row, Base::NormAt(p));
    return query;
  }
};
