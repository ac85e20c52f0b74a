// NVTX as a process has it: the functions that the recorder puts into its table.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <cstdint>

#include "support/catch.h"

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);

namespace graphdump {

struct Nvtx {
  static inline NvtxFunctionPointer functions[NVTX_CBID_CORE_SIZE] = {};
  static inline NvtxFunctionPointer* slots[NVTX_CBID_CORE_SIZE] = {};
  static int get_table(NvtxCallbackModule module, NvtxFunctionTable* table, unsigned* size) {
    for (unsigned i = 0; i < NVTX_CBID_CORE_SIZE; ++i) slots[i] = &functions[i];
    *table = slots;
    *size = NVTX_CBID_CORE_SIZE;
    return module == NVTX_CB_MODULE_CORE ? 1 : 0;
  }
  static const void* get_export_table(std::uint32_t) {
    static const NvtxExportTableCallbacks callbacks{sizeof(callbacks), &get_table};
    return &callbacks;
  }
  Nvtx() { REQUIRE(InitializeInjectionNvtx2(&get_export_table) == 1); }
  int push(const char* name) const {
    return reinterpret_cast<int (*)(const char*)>(functions[NVTX_CBID_CORE_RangePushA])(name);
  }
  void mark(const char* text) const { reinterpret_cast<void (*)(const char*)>(functions[NVTX_CBID_CORE_MarkA])(text); }
  int pop() const { return reinterpret_cast<int (*)()>(functions[NVTX_CBID_CORE_RangePop])(); }
};

}  // namespace graphdump
