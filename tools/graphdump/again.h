// This program once more, where the addresses of memory are the same in each process.
#pragma once

namespace graphdump {

// Executes this process anew without address randomization, from its beginning, with the same arguments. Returns when
// that has been done once, or cannot be. Nothing may have been printed yet.
void run_again_without_randomization();

}  // namespace graphdump
