#include <cgrt/inspect/json.h>
#include <cgrt/inspect/text.h>
#include <cgrt/record/record.h>

#include <cstdio>

int main(int, char** argv) {
  const auto graph = cgrt::inspect::read_file(argv[1]);
  if (!graph.ok()) return 1;
  std::fputs(cgrt::inspect::to_text(*graph).c_str(), stdout);
  return 0;
}
