#include "cgrt_kernels/common/workspace.h"

#include <algorithm>

#include "cgrt/base/status_macros.h"
#include "cgrt/memory/copy.h"
#include "cgrt_kernels/common/plan.h"

namespace cgrt::kernels {

absl::Status initialize_workspace(LaunchTarget target, const Workspace& workspace) {
  if (workspace.bytes == 0) return absl::OkStatus();
  CGRT_RETURN_IF_ERROR(check_pointer("initialize_workspace", "workspace", workspace.data, kWorkspaceAlignment));
  return fill8(target, workspace.data, 0, std::min(workspace.bytes, kWorkspaceHeaderBytes));
}

}  // namespace cgrt::kernels
