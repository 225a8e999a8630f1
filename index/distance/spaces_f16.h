// Half float spaces: float32 queries against rows of halves. Included inside a target's namespace after F16Dot, F16L2 and
// F16Decode.

struct F16Base {
  static constexpr uint32_t kExpand = 1;
  static constexpr uint32_t kPrefetchLines = HOTKV_F32_PREFETCH_LINES;
  static QueryView FromRow(const SpaceParams& p, const char* row, void* buffer) {
    F16Decode(reinterpret_cast<const uint16_t*>(row), p.length, static_cast<float*>(buffer));
    QueryView query;
    query.data = buffer;
    return query;
  }
};

struct F16DotSpace : F16Base {
  static float One(const SpaceParams& p, const QueryView& q, const char* row) {
    return -F16Dot(static_cast<const float*>(q.data), reinterpret_cast<const uint16_t*>(row),
                   p.length);
  }
  static void Batch4(const SpaceParams& p, const QueryView& q, const char* const* rows, float* out) {
    for (int i = 0; i < 4; ++i) out[i] = One(p, q, rows[i]);
  }
};

struct F16L2Space : F16Base {
  static float One(const SpaceParams& p, const QueryView& q, const char* row) {
    return F16L2(static_cast<const float*>(q.data), reinterpret_cast<const uint16_t*>(row),
                 p.length);
  }
  static void Batch4(const SpaceParams& p, const QueryView& q, const char* const* rows, float* out) {
    for (int i = 0; i < 4; ++i) out[i] = One(p, q, rows[i]);
  }
};
