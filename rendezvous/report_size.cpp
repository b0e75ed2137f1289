#include "rendezvous/report_size.hpp"

namespace tensorplay::rendezvous {
namespace {

constexpr std::size_t kFirstMeasure = 64 << 10;

void cut_middle(std::string& text, std::size_t most) {
  constexpr std::string_view kGap = " ... ";
  if (text.size() <= most) return;
  if (most <= kGap.size()) return text.clear();
  const auto head = (most - kGap.size()) / 2;
  const auto tail = most - kGap.size() - head;
  text.replace(head, text.size() - head - tail, kGap);
}

void cut(WorkerFailure& failure, std::size_t most) {
  cut_middle(failure.message, most);
  cut_middle(failure.traceback, most);
  if (most == 0) return failure.last_lines.clear();
  for (auto& line : failure.last_lines) cut_middle(line, most / 4);
}

}  // namespace

std::string encode_within(Report report, std::size_t limit) {
  auto text = encode(report);
  for (auto most = kFirstMeasure; text.size() > limit; most /= 4) {
    if (auto* stopped = std::get_if<Stopped>(&report)) {
      for (auto& failure : stopped->failures) cut(failure, most);
    } else if (auto* failed = std::get_if<Failed>(&report)) {
      cut(failed->failure, most);
    }
    text = encode(report);
    if (most == 0) break;
  }
  return text;
}

}  // namespace tensorplay::rendezvous
