#include "runtime/group/composed_work.hpp"

#include <atomic>
#include <utility>

namespace tensorplay::distributed {
namespace {

struct Parts {
  std::vector<std::shared_ptr<Work>> works;
  std::shared_ptr<Work> whole;
  std::atomic<std::size_t> running;

  void end_one() {
    if (--running > 0) return;
    std::vector<Tensor> result;
    std::exception_ptr error;
    for (const auto& work : works) {
      if (!work) continue;
      if (!error) error = work->exception();
      if (work->exception()) continue;
      for (auto& tensor : work->result()) result.push_back(std::move(tensor));
    }
    if (error) {
      whole->fail(error);
    } else {
      whole->finish(std::move(result));
    }
  }
};

}  // namespace

std::shared_ptr<Work> compose_works(std::string name, std::vector<std::shared_ptr<Work>> works) {
  auto parts = std::make_shared<Parts>();
  parts->whole = std::make_shared<Work>(std::move(name), 0);
  parts->running = works.size() + 1;  // One for this function: callbacks of complete works run at once.
  parts->works = std::move(works);
  for (const auto& work : parts->works) {
    if (!work) {
      --parts->running;
    } else {
      work->get_future()->add_done_callback([parts](const Future&) { parts->end_one(); });
    }
  }
  const auto whole = parts->whole;
  parts->end_one();
  return whole;
}

}  // namespace tensorplay::distributed
