#include "support/named_kernels.h"

#include <tuple>

#include "support/norm_template.cuh"

enum GlobalOp { kGlobalFirst, kGlobalSecond };
template <GlobalOp kOp>
__global__ void global_template() {}
static __global__ void static_kernel(int) {}
extern "C" __global__ void c_kernel_of_tests() {}

namespace cgrt::testing {

struct Outer {
  enum Inner : unsigned char { kInner = 200 };
};
template <class T, int kCount>
struct Pack {
  T values[kCount];
};
template <Op kOp>
struct Policy {
  struct Step {};
};
template <int kNumber>
struct ATypeWithANameThatIsQuiteLongSoThatAFewOfThemAreLongerThanWhateverSomebodyThoughtWouldDo {};

template <class T>
__global__ void of_type(const T*, void (*)(int)) {}
template <Outer::Inner kInner>
__global__ void of_inner() {}
template <bool kBool, char kChar, int kInt, unsigned kUnsigned, long kLong, unsigned long long kLongLong>
__global__ void of_numbers(Pack<int, 3>) {}
template <class... T>
__global__ void of_many(T...) {}
template <class T, auto... kValues>
__global__ void of_values(T) {}
template <template <class, int> class T>
__global__ void of_template() {}
template <class Function>
__global__ void of_function(Function function) {
  function();
}
template <class T>
__global__ void of_long() {}
inline namespace v1 {
__global__ void versioned(int (*)[3]) {}
}  // namespace v1
__global__ void overloaded(Op, Rows) {}

namespace {
enum class Hidden { kFirst, kSecond };
struct HiddenType {};
template <Hidden kHidden>
__global__ void of_hidden() {}
template <class T>
__global__ void of_hidden_type(T) {}
namespace inner {
__global__ void hidden() {}
}  // namespace inner
}  // namespace

__global__ void take_rows(int, Rows rows) { rows.out[0] = rows.in[0]; }
__global__ void take_table(const __grid_constant__ Table) {}

template <class Function>
KernelRef kernel_of(Function) {
  return make_kernel<of_function<Function>>();
}

// For the script kernel_names.py, which reads what the compiler made of these.
std::vector<KernelRef> named_kernels() {
  const int captured = 3;
  return {
      make_kernel<global_template<kGlobalSecond>>(),
      make_kernel<static_kernel>(),
      make_kernel<of_type<float>>(),
      make_kernel<of_type<Policy<Op::kNone>::Step>>(),
      make_kernel<of_type<Policy<Op::kNorm>>>(),
      make_kernel<of_inner<Outer::kInner>>(),
      make_kernel<of_numbers<true, ';', -3, 4u, -5l, 6ull>>(),
      make_kernel<of_many<>>(),
      make_kernel<of_many<int, Pack<double, 2>, Op>>(),
      make_kernel<of_values<int, 3, true, '>', 7ull>>(),
      make_kernel<of_template<Pack>>(),
      make_kernel<versioned>(),
      make_kernel<overloaded>(),
      make_kernel<of_hidden_type<HiddenType>>(),
      make_kernel<of_hidden_type<std::tuple<int, HiddenType>>>(),
      make_kernel<inner::hidden>(),
      kernel_of([] __device__() {}),
      kernel_of([captured] __device__() { return captured; }),
  };
}

template <int kNumber>
using Long = ATypeWithANameThatIsQuiteLongSoThatAFewOfThemAreLongerThanWhateverSomebodyThoughtWouldDo<kNumber>;

Kernel<> norm_kernel() { return make_kernel<norm<Op::kNorm>>(); }
Kernel<> unnamed_kernel() { return make_kernel<of_hidden<Hidden::kSecond>>(); }
Kernel<> long_kernel() {
  return make_kernel<of_long<std::tuple<Long<1>, Long<2>, Long<3>, Long<4>, Long<5>, Long<6>, Long<7>, Long<8>>>>();
}
Kernel<> c_kernel() { return make_kernel<c_kernel_of_tests>(); }
Kernel<int, Rows> rows_kernel() { return make_kernel<take_rows>(); }
Kernel<Table> table_kernel() { return make_kernel<take_table>(); }

}  // namespace cgrt::testing
