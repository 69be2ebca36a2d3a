// The two ways in which report/bound.cc makes a report smaller. Both leave every reference inside the report good.
#pragma once

#include <functional>

#include "report/report.pb.h"

namespace attntrace {

// Variants that differ in nothing but shapes are counted together beyond `shapes` of them. Those that `placed` is false for
// lose their call path and module first, and are all counted together.
void FoldVariants(int shapes, const std::function<bool(const Variant&)>& placed, Report* report);

// Of every call path the innermost `depth` frames stay, and the user's line. Frames and paths that nothing names are removed.
void CutPaths(int depth, Report* report);

}  // namespace attntrace
