// Float32 spaces over a target's raw kernels. Included inside a target's namespace after F32Dot, F32Dot4, F32L2, F32L2x4.

struct F32Base {
  static constexpr uint32_t kExpand = 1;
  static constexpr uint32_t kPrefetchLines = HOTKV_F32_PREFETCH_LINES;
  static QueryView FromRow(const SpaceParams&, const char* row, void*) {
    QueryView query;
    query.data = row;
    return query;
  }
};

struct F32DotSpace : F32Base {
  static float One(const SpaceParams& p, const QueryView& q, const char* row) {
    return -F32Dot(static_cast<const float*>(q.data), reinterpret_cast<const float*>(row), p.length);
  }
  static void Batch4(const SpaceParams& p, const QueryView& q, const char* const* rows, float* out) {
    const float* const r[4] = {
        reinterpret_cast<const float*>(rows[0]), reinterpret_cast<const float*>(rows[1]),
        reinterpret_cast<const float*>(rows[2]), reinterpret_cast<const float*>(rows[3])};
    F32Dot4(static_cast<const float*>(q.data), r, p.length, out);
    for (int i = 0; i < 4; ++i) out[i] = -out[i];
  }
};

struct F32L2Space : F32Base {
  static float One(const SpaceParams& p, const QueryView& q, const char* row) {
    return F32L2(static_cast<const float*>(q.data), reinterpret_cast<const float*>(row), p.length);
  }
  static void Batch4(const SpaceParams& p, const QueryView& q, const char* const* rows, float* out) {
    const float* const r[4] = {
        reinterpret_cast<const float*>(rows[0]), reinterpret_cast<const float*>(rows[1]),
        reinterpret_cast<const float*>(rows[2]), reinterpret_cast<const float*>(rows[3])};
    F32L2x4(static_cast<const float*>(q.data), r, p.length, out);
  }
};
