// The memory seam for Python (flex_reference.py), preloaded: the same counters behind C names.
#include "kernels/memory_seam.h"

extern "C" {

__attribute__((visibility("default"))) int64_t attntrace_reference_live(int type, int index) {
  return attntrace::reference::LiveBytes(type, index);
}
__attribute__((visibility("default"))) int64_t attntrace_reference_peak(int type, int index) {
  return attntrace::reference::PeakBytes(type, index);
}
__attribute__((visibility("default"))) void attntrace_reference_reset(int type, int index) {
  attntrace::reference::ResetPeak(type, index);
}
}
