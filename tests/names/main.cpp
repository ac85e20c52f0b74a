// kernel_names: each line of standard input, a mangled name, as graphs name that kernel.
#include <iostream>
#include <string>

#include "cgrt/launch/function_name.h"

int main() {
  for (std::string symbol; std::getline(std::cin, symbol);) {
    std::cout << cgrt::internal::function_name(symbol.c_str()) << '\n';
  }
}
