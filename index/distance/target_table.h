// The end of every distance/kernels_*.cc: its spaces and its entry in the list of targets. Included inside the target's
// namespace, in its anonymous part, after all kernels.

#include "index/quant/quant_inl.h"
#include "index/graph/walk_inl.h"
#include "index/distance/spaces_f32.h"
#include "index/distance/spaces_f16.h"
#include "index/distance/spaces_codes.h"

constexpr RawKernels kRaw = {
    &F32Dot, &F32L2,  &F32Dot4, &F32L2x4, &F16Dot, &F16L2,         &F16Encode, &Q4Sum,    &Q8Sum,
    &Q4Sum4, &Q8Sum4, &Fht,     &Rotate,  &MaxAbs, &QuantizeQuery, &EncodeQ4,  &EncodeQ8, &BinSum,
    &BinSum4, &EncodeBin,
};

constexpr Target TargetNamed(const char* name, bool (*supported)()) {
  return {name,
          supported,
          kRaw,
          {&kOpsOf<F32DotSpace>, &kOpsOf<F32L2Space>, &kOpsOf<F16DotSpace>, &kOpsOf<F16L2Space>,
           &kOpsOf<UnitSpace<CodeCosine<false>>>, &kOpsOf<NormSpace<CodeCosine<false>, false>>,
           &kOpsOf<NormSpace<CodeCosine<false>, true>>, &kOpsOf<UnitSpace<CodeCosine<true>>>,
           &kOpsOf<NormSpace<CodeCosine<true>, false>>, &kOpsOf<NormSpace<CodeCosine<true>, true>>,
           &kOpsOf<UnitSpace<BinCosine>>, &kOpsOf<NormSpace<BinCosine, false>>,
           &kOpsOf<NormSpace<BinCosine, true>>}};
}
