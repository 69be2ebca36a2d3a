#include "tracer/near_names.h"

#include <algorithm>
#include <utility>

namespace attntrace {

size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

std::vector<std::string> NearNames(absl::string_view word, const std::vector<absl::string_view>& known) {
  const size_t limit = std::max<size_t>(2, word.size() / 3);
  std::vector<std::pair<size_t, std::string>> near;
  for (absl::string_view name : known) {
    const bool begins = word.size() >= 3 && name.substr(0, word.size()) == word;
    const size_t distance = begins ? 0 : EditDistance(word, name);
    // A distance as long as the word itself would make every short name "near".
    if (begins || (distance <= limit && distance < word.size())) near.emplace_back(distance, name);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [distance, name] : near) {
    if (names.size() < 3) names.push_back(std::move(name));
  }
  return names;
}

std::string DidYouMean(absl::string_view word, const std::vector<absl::string_view>& known) {
  const std::vector<std::string> near = NearNames(word, known);
  std::string text;
  for (size_t i = 0; i < near.size(); ++i) {
    text += i == 0 ? ", did you mean " : i + 1 == near.size() ? " or " : ", ";
    text += near[i];
  }
  if (!text.empty()) text += '?';
  return text;
}

}  // namespace attntrace
