#include "report/writers/sites.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "report/writers/places.h"
#include "tracer/spool/words.h"

namespace attntrace {
namespace {

struct Site {
  std::vector<SiteRow> rows;
  std::tuple<uint64_t, uint32_t> first{UINT64_MAX, UINT32_MAX};  // first_ns, id
};

std::string Name(const Frame* frame) { return frame == nullptr ? "" : absl::StrCat(frame->file(), ":", frame->line()); }

// Call site, its owner and the module's class.
std::string SiteName(const Report& report, const Variant& variant) {
  const CallPath* path = PathOf(report, variant);
  if (path == nullptr) return absl::StrCat("none\n", variant.no_call_path(), "\n", variant.operator_());
  const Frame* site = FrameAt(report, *path, path->call_site());
  const Frame* named = site != nullptr ? site : FrameAt(report, *path, 0);
  return absl::StrCat(Name(named), "\n", named == nullptr ? "" : named->owner(), "\n", variant.module().class_name());
}

std::string UserName(const Report& report, const Variant& variant) {
  const CallPath* path = PathOf(report, variant);
  return path == nullptr ? "" : Name(FrameAt(report, *path, path->user()));
}

PhaseCell::Ran RanOf(const Variant& variant) { return {variant.backend(), variant.path()}; }

bool Has(const PhaseCell& cell, const PhaseCell::Ran& ran) {
  return std::find(cell.ran.begin(), cell.ran.end(), ran) != cell.ran.end();
}

void AddTo(PhaseCell* cell, const Variant& variant) {
  if (PhaseCell::Ran ran = RanOf(variant); !Has(*cell, ran)) cell->ran.push_back(std::move(ran));
  cell->calls += variant.count();
  cell->device_ns += variant.device_ns();
  cell->peak_bytes = std::max(cell->peak_bytes, variant.peak_bytes());
}

class Grouper {
 public:
  explicit Grouper(const Report& report) : report_(report) {}

  void Forward(const Variant& variant) {
    const std::string name = SiteName(report_, variant);
    const size_t site = SiteAt(absl::StrCat(name, "\n", UserName(report_, variant)));
    any_user_.try_emplace(name, site);
    Put(variant, site, RowWith(variant, site, &SiteRow::forward), &SiteRow::forward);
  }

  // A recompute runs below the user's call of backward(), not below that of the forward: the user's line does not count.
  void Recompute(const Variant& variant) {
    const auto known = any_user_.find(SiteName(report_, variant));
    const size_t site = known != any_user_.end() ? known->second : Own(variant);
    std::vector<SiteRow>& rows = sites_[site].rows;
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const SiteRow& r) { return Has(r.forward, RanOf(variant)); });
    size_t row = static_cast<size_t>(same - rows.begin());
    if (same == rows.end()) row = rows.empty() ? NewRow(variant, site) : 0;
    Put(variant, site, row, &SiteRow::recompute);
  }

  void Backward(const Variant& variant) {
    if (const auto forward = rows_.find({variant.process(), variant.forward()});
        variant.forward() != 0 && forward != rows_.end()) {
      return Put(variant, forward->second.first, forward->second.second, &SiteRow::backward);
    }
    const size_t site = Own(variant);
    if (sites_[site].rows.empty()) NewRow(variant, site);
    Put(variant, site, 0, &SiteRow::backward);
  }

  std::vector<SiteRow> Finish() {
    std::stable_sort(sites_.begin(), sites_.end(), [](const Site& a, const Site& b) { return a.first < b.first; });
    std::vector<SiteRow> rows;
    for (Site& site : sites_) {
      for (SiteRow& row : site.rows) rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  size_t SiteAt(const std::string& key) {
    const auto [at, fresh] = by_key_.try_emplace(key, sites_.size());
    if (fresh) sites_.emplace_back();
    return at->second;
  }
  size_t Own(const Variant& variant) {
    return SiteAt(absl::StrCat(SiteName(report_, variant), "\n", UserName(report_, variant)));
  }
  size_t NewRow(const Variant& variant, size_t site) {
    sites_[site].rows.push_back({&variant, {}, {}, {}});
    return sites_[site].rows.size() - 1;
  }
  size_t RowWith(const Variant& variant, size_t site, PhaseCell SiteRow::*phase) {
    const std::vector<SiteRow>& rows = sites_[site].rows;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (Has(rows[i].*phase, RanOf(variant))) return i;
    }
    return NewRow(variant, site);
  }
  void Put(const Variant& variant, size_t site, size_t row, PhaseCell SiteRow::*phase) {
    AddTo(&(sites_[site].rows[row].*phase), variant);
    rows_[{variant.process(), variant.id()}] = {site, row};
    if (variant.count() > 0) sites_[site].first = std::min(sites_[site].first, {variant.first_ns(), variant.id()});
  }

  const Report& report_;
  std::vector<Site> sites_;
  absl::flat_hash_map<std::string, size_t> by_key_, any_user_;
  std::map<std::pair<uint32_t, uint32_t>, std::pair<size_t, size_t>> rows_;  // (process, id) -> (site, row)
};

}  // namespace

std::vector<SiteRow> CallSiteRows(const Report& report) {
  Grouper grouper(report);
  const auto each = [&](Phase phase, void (Grouper::*add)(const Variant&)) {
    for (const Variant& variant : report.variants()) {
      if (variant.phase() == NameOf(phase)) (grouper.*add)(variant);
    }
  };
  each(Phase::kForward, &Grouper::Forward);
  each(Phase::kRecompute, &Grouper::Recompute);
  each(Phase::kBackward, &Grouper::Backward);  // last: it joins either
  return grouper.Finish();
}

}  // namespace attntrace
