// The arithmetic of a row's backward: facts about the whole row, then what each element becomes.
#pragma once

#include "cgrt_kernels/rows/row.cuh"

namespace cgrt::kernels {

// Of a part of a row, x and g = dy * weight. rms_norm: sums of x * x and of g * x.
struct alignas(8) Products {
  float squares, product;
};
__device__ __forceinline__ Products none(Products) { return {0.0f, 0.0f}; }
__device__ __forceinline__ Products merge(Products a, Products b) {
  return {a.squares + b.squares, a.product + b.product};
}
__device__ __forceinline__ Products shuffle(Products value, int mask) {
  return {shuffle(value.squares, mask), shuffle(value.product, mask)};
}

// layer_norm: as Moments, with the sums of g and of g * (x - mean), so that one exchange is enough.
struct alignas(8) Comoments {
  float count, mean, squares, sum, product;
};
__device__ __forceinline__ Comoments none(Comoments) { return {0.0f, 0.0f, 0.0f, 0.0f, 0.0f}; }
__device__ __forceinline__ Comoments join_warp(Comoments part, float count) {
  const float mean = reduce_warp(part.count * part.mean) / fmaxf(count, 1.0f), away = part.mean - mean;
  return {count, mean, reduce_warp(part.squares + part.count * away * away), reduce_warp(part.sum),
          reduce_warp(part.product + part.sum * away)};
}

// Weights of a part of a row, in registers or read where they are each time. Ones when there are none.
template <class Part, bool kHeld>
class RowWeights {
 public:
  using Pack = typename Part::Pack;
  __device__ __forceinline__ RowWeights(const void* weight, const typename Part::Where& place)
      : from_(static_cast<const Pack*>(weight)) {
    if constexpr (kHeld) load_weights(held_, weight, place);
  }
  __device__ __forceinline__ void get(int pack, const typename Part::Where& place,
                                      float (&values)[Part::kElements]) const {
    if constexpr (kHeld) {
      unpack(held_.packs[pack], values);
    } else if (from_ == nullptr) {
#pragma unroll
      for (float& value : values) value = 1;
    } else {
      unpack(place.has(pack) ? from_[place.of(pack)] : Pack{}, values);
    }
  }
  __device__ __forceinline__ void stay_packed() {
    if constexpr (kHeld) held_.stay_packed();
  }

 private:
  const Pack* from_;
  Part held_;
};

// What write_gradient needs to know about the whole row.
struct BackwardFacts {
  float mean, scale, sum, product;
};

// Elements of a row that stay in shared memory, from the first of this thread on: looks like a RowPart.
template <class T, int kPacks>
struct SharedElements {
  using Pack = T;
  using Where = Place<kPacks>;
  static constexpr int kPackCount = kPacks, kElements = 1;
  struct {
    const T* from;
    __device__ __forceinline__ T operator[](int pack) const { return from[32 * pack]; }
  } packs;
  __device__ __forceinline__ void stay_packed() {}
};

// Behind a condition each single element would be loaded after the one before it has come. In registers they are
// zeros where there is nothing, so that the first to look at them needs none.
template <class Part>
constexpr bool kLooksAtAll = Part::kElements == 1;
template <class T, int kPacks>
constexpr bool kLooksAtAll<SharedElements<T, kPacks>> = false;

// visit(pack, elements of x, elements of dy) of the packs that there are, or of all.
template <bool kAll = false, class Part, class Visit>
__device__ __forceinline__ void visit_packs(const Part& x, const Part& dy, const typename Part::Where& place,
                                            Visit visit) {
#pragma unroll
  for (int p = 0; p < Part::kPackCount; ++p) {
    if (!kAll && !place.has(p)) continue;
    float a[Part::kElements], b[Part::kElements];
    unpack(x.packs[p], a);
    unpack(dy.packs[p], b);
    visit(p, a, b);
  }
}

template <RowOp kOp, class Group, class Part, class Weights>
__device__ __forceinline__ BackwardFacts reduce_backward(const Group& group, Part& x, Part& dy, const Weights& weights,
                                                         const typename Part::Where& place, float epsilon,
                                                         std::uint32_t columns) {
  constexpr int kSize = Part::kElements;
  if constexpr (kIsSoftmax<kOp>) {
    float sum = 0;
    visit_packs<kLooksAtAll<Part>>(x, dy, place, [&](int, const float(&y)[kSize], const float(&g)[kSize]) {
#pragma unroll
      for (int i = 0; i < kSize; ++i) sum += kOp == RowOp::kSoftmax ? g[i] * y[i] : g[i];
    });
    return {0.0f, 1.0f, group.reduce(sum), 0.0f};
  } else {
    const float all = static_cast<float>(columns);
    float mean = 0, elements = all;
    if constexpr (kOp == RowOp::kLayerNorm) {
      float sum = 0;
      visit_packs<kLooksAtAll<Part>>(x, dy, place, [&](int, const float(&values)[kSize], const float(&)[kSize]) {
#pragma unroll
        for (const float value : values) sum += value;
      });
      if constexpr (!Group::kIsWarp) elements = static_cast<float>(place.of_warp() * kSize);
      mean = __fdividef(reduce_lanes<Group::kLanes>(sum), fmaxf(elements, 1.0f));
      x.stay_packed();
    }
    float squares = 0, sum = 0, product = 0;
    visit_packs(x, dy, place, [&](int p, const float(&values)[kSize], const float(&gradients)[kSize]) {
      float weight[kSize], of_pack = 0;
      weights.get(p, place, weight);
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        const float centered = values[i] - mean, g = gradients[i] * weight[i];
        of_pack += centered * centered;
        sum += g;
        product += g * centered;
      }
      squares += of_pack;
    });
    if constexpr (kOp == RowOp::kLayerNorm) {
      const auto all_lanes = [](float value) { return reduce_lanes<Group::kLanes>(value); };
      const Comoments of_warp{elements, mean, all_lanes(squares), all_lanes(sum), all_lanes(product)};
      const Comoments row = group.join(of_warp, all);
      const float scale = rsqrtf(row.squares / all + epsilon);
      return {row.mean, scale, row.sum / all, scale * scale * row.product / all};
    } else {
      const Products row = group.reduce(Products{squares, product});
      const float scale = rsqrtf(row.squares / all + epsilon);
      return {0.0f, scale, 0.0f, scale * scale * row.product / all};
    }
  }
}

// keep(pack, index, dy, normalized x) of each element of a norm.
template <RowOp kOp, class Part, class Weights, class Keep>
__device__ __forceinline__ void write_gradient(const BackwardFacts& facts, Part& x, Part& dy, Weights& weights,
                                               typename Part::Pack* dx, const typename Part::Where& place, Keep keep) {
  constexpr int kSize = Part::kElements;
  x.stay_packed();
  dy.stay_packed();
  weights.stay_packed();
#pragma unroll
  for (int p = 0; p < Part::kPackCount; ++p) {
    if (!place.has(p)) continue;
    float values[kSize], gradients[kSize], result[kSize];
    unpack(x.packs[p], values);
    unpack(dy.packs[p], gradients);
    if constexpr (kIsSoftmax<kOp>) {
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        result[i] = kOp == RowOp::kSoftmax ? values[i] * (gradients[i] - facts.sum)
                                           : gradients[i] - exp_of(values[i]) * facts.sum;
      }
    } else {
      float weight[kSize];
      weights.get(p, place, weight);
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        const float centered = values[i] - facts.mean;
        result[i] = facts.scale * (gradients[i] * weight[i] - facts.sum - centered * facts.product);
        keep(p, i, gradients[i], centered * facts.scale);
      }
    }
    pack_into(dx[place.of(p)], result);
  }
}

}  // namespace cgrt::kernels
