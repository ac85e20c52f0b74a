// The device code of maps and matrix operations: each element once, whatever the sizes are and wherever arrays begin,
// and no address outside of them.
#include "device_code/emulated.h"

#include <algorithm>
#include <new>
#include <random>

#include "cgrt_kernels/elementwise/kernels.cu.cpp"
#include "cgrt_kernels/elementwise/matrix.cu.cpp"
#include "support/catch.h"

namespace cgrt::kernels {
namespace {

// `count` elements whose ends the sanitizers know, the first of them `shift` elements behind an aligned address.
template <class T>
class Elements {
 public:
  Elements(std::uint64_t count, unsigned shift) : memory_(new (std::align_val_t(16)) T[shift + count]), shift_(shift) {}
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;
  ~Elements() { ::operator delete[](memory_, std::align_val_t(16)); }
  T* data() const { return memory_ + shift_; }

 private:
  T* memory_;
  unsigned shift_;
};

template <class Body>
void run_threads(std::uint64_t elements, std::uint64_t pack, Body body) {
  const HostGrid grid{.grid = Dim3(static_cast<unsigned>(map_blocks(elements, pack))), .block = Dim3(kMapBlock)};
  emulated::run(
      grid, [](void* context) { (*static_cast<Body*>(context))(); }, &body);
}

template <class T>
T number(std::uint64_t i, unsigned nth) {
  return static_cast<T>(static_cast<float>((i * 37 + nth * 11) % 101) - 50.0f);
}

struct Add {
  float operator()(float a, float b) const { return a + b; }
};

template <class Out, class A, class B>
void check_map(std::uint64_t count, unsigned of_out, unsigned of_a, unsigned of_b) {
  const Elements<Out> out(count, of_out);
  const Elements<A> a(count, of_a);
  const Elements<B> b(count, of_b);
  for (std::uint64_t i = 0; i < count; ++i) a.data()[i] = number<A>(i, 1), b.data()[i] = number<B>(i, 2);
  run_threads(count, kMapPack<Out, A, B>, [&] {
    internal::map_elements(Add{}, count, out.data(), static_cast<const A*>(a.data()), static_cast<const B*>(b.data()));
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const float expected = static_cast<float>(number<A>(i, 1)) + static_cast<float>(number<B>(i, 2));
    if (static_cast<float>(out.data()[i]) != expected) ++wrong;
  }
  INFO(count << " elements, out " << of_out << ", a " << of_a << ", b " << of_b << " behind");
  CHECK(wrong == 0);
}

template <MatrixOp kOp, class T, Alignment kAlignment = Alignment::kUnaligned>
void check_matrix(std::uint32_t rows, std::uint32_t columns, unsigned of_out, unsigned of_a, unsigned of_b) {
  const std::uint64_t count = std::uint64_t{rows} * columns, stride = is_gated(kOp) ? 2 * columns : columns;
  const Elements<T> out(count, of_out), a(rows * stride, of_a), b(is_per_row(kOp) ? rows : columns, of_b);
  for (std::uint64_t i = 0; i < rows * stride; ++i) a.data()[i] = number<T>(i, 1);
  for (std::uint64_t i = 0; i < (is_per_row(kOp) ? rows : columns); ++i) b.data()[i] = number<T>(i, 2);
  const MatrixParams params{out.data(), a.data(), b.data(), rows, WideDivisor(columns)};
  run_threads(count, kMapPack<T>, [&] { matrix_elementwise<kOp, T, kAlignment>(params); });
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const T* const x = a.data() + i / columns * stride + i % columns;
    const T y = is_gated(kOp) ? x[columns] : b.data()[is_per_row(kOp) ? i / columns : i % columns];
    const T expected = internal::rounded_to<T>(FunctorOf<kOp>{}(*x, y));
    if (static_cast<float>(out.data()[i]) != static_cast<float>(expected)) ++wrong;
  }
  INFO(rows << "x" << columns << ", out " << of_out << ", a " << of_a << ", b " << of_b << " behind");
  CHECK(wrong == 0);
}

std::mt19937 engine(1);
unsigned below(unsigned end) { return static_cast<unsigned>(engine() % end); }

TEST_CASE("device code of maps: all elements, wherever arrays begin") {
  for (int i = 0; i < 600; ++i) {
    const std::uint64_t count = 1 + below(i % 3 == 0 ? 40 : i % 3 == 1 ? 700 : 5000);
    const bool are_aligned = i % 7 == 0, are_alike = i % 4 == 1;
    const unsigned out = are_aligned ? 0 : below(70), a = are_aligned || are_alike ? out : below(70),
                   b = are_aligned || are_alike ? out : below(9);
    check_map<float, float, float>(count, out, a, b);
    check_map<__half, __half, __half>(count, out, a, b);
    check_map<float, __half, float>(count, out, a, b);
    check_map<__half, float, __half>(count, out, a, b);
    check_map<double, float, double>(count, out, a, b);
  }
  // Blocks full of packs, and not.
  for (std::uint64_t count = 8 * kMapBlock - 40; count < 8 * kMapBlock + 20; ++count) {
    check_map<__half, __half, __half>(count, 0, 0, 0);
  }
}

TEST_CASE("device code of matrix operations: all elements, wherever rows and arrays begin") {
  for (int i = 0; i < 400; ++i) {
    const bool are_aligned = i % 4 == 0;
    const unsigned few = below(i % 2 == 0 ? 60 : 6), wide = below(i % 3 == 0 ? 20 : i % 3 == 1 ? 140 : 1200);
    const std::uint32_t rows = 1 + few, columns = are_aligned ? (wide / 8 + 1) * 8 : wide + 1;
    const unsigned out = are_aligned ? 0 : below(70),
                   a = are_aligned  ? 0
                       : i % 4 == 1 ? out
                                    : below(70),
                   b = are_aligned ? 0 : below(9);
    check_matrix<MatrixOp::kAddPerColumn, __half>(rows, columns, out, a, b);
    check_matrix<MatrixOp::kAddPerColumn, float>(rows, columns, out, a, b);
    check_matrix<MatrixOp::kMulPerRow, __half>(rows, columns, out, a, b);
    check_matrix<MatrixOp::kSiluAndMul, __half>(rows, columns, out, a, b);
    check_matrix<MatrixOp::kSiluAndMul, float>(rows, columns, out, a, b);
    if (!are_aligned) continue;
    check_matrix<MatrixOp::kAddPerColumn, __half, Alignment::kAligned>(rows, columns, 0, 0, 0);
    check_matrix<MatrixOp::kMulPerRow, float, Alignment::kAligned>(rows, columns, 0, 0, 0);
    check_matrix<MatrixOp::kSiluAndMul, __half, Alignment::kAligned>(rows, columns, 0, 0, 0);
  }
}

TEST_CASE("a wide divisor divides any number") {
  std::mt19937_64 numbers(1);
  std::uint64_t wrong = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const auto value = static_cast<std::uint32_t>(std::max<std::uint64_t>(numbers() >> (33 + numbers() % 31), 1));
    std::uint64_t number = numbers() >> numbers() % 64;
    if (i % 3 == 0) number = number / value * value + (i % 2 == 0 ? 0 : value - 1);  // where a quotient ends
    const auto [quotient, remainder] = WideDivisor(value).divide(number);
    if (quotient != number / value || remainder != number % value) ++wrong;
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace cgrt::kernels
