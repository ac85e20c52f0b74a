#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cgrt/cgrt.h"
#include "cgrt/simulator/simulator.h"
#include "support/catch.h"
#include "support/status_matchers.h"

namespace cgrt::testing {
namespace {

std::vector<std::string> scopes_of_empty_nodes(const Graph& graph) {
  std::vector<std::string> scopes;
  const ir::GraphIr read = *snapshot(graph);
  for (const ir::Node& node : read.nodes) {
    if (node.kind == ir::NodeKind::kEmpty) scopes.push_back(node.scope);
  }
  return scopes;
}

// An empty node in `name`, inside of two levels of child graphs.
Graph nested(std::string_view name) {
  Graph inner = *Graph::create(DeviceRef(0));
  Graph middle = *Graph::create(DeviceRef(0));
  Graph outer = *Graph::create(DeviceRef(0));
  {
    Scope scope(name);
    REQUIRE_OK(inner.add_empty({}));
  }
  REQUIRE_OK(middle.add_child({}, inner));
  REQUIRE_OK(outer.add_child({}, middle));
  return outer;
}

TEST_CASE("scopes of nodes in children of children survive copies and clones", "[graph]") {
  Simulator simulator;
  const Graph graph = nested("attention");
  const Graph clone = *graph.clone();
  Graph parent = *Graph::create(DeviceRef(0));
  REQUIRE_OK(parent.add_child({}, clone));

  CHECK(scopes_of_empty_nodes(graph) == std::vector<std::string>{"attention"});
  CHECK(scopes_of_empty_nodes(clone) == std::vector<std::string>{"attention"});
  CHECK(scopes_of_empty_nodes(parent) == std::vector<std::string>{"attention"});
}

TEST_CASE("each child has its own scopes", "[graph]") {
  Simulator simulator;
  Graph parent = *Graph::create(DeviceRef(0));
  Graph plain = *Graph::create(DeviceRef(0));
  REQUIRE_OK(plain.add_empty({}));

  REQUIRE_OK(parent.add_child({}, nested("a")));
  REQUIRE_OK(parent.add_child({}, plain));
  REQUIRE_OK(parent.add_child({}, nested("b")));

  CHECK(scopes_of_empty_nodes(parent) == std::vector<std::string>{"", "a", "b"});
}

}  // namespace
}  // namespace cgrt::testing
