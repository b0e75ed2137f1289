#include "tests/rendezvous/scenario.hpp"

#include <cstdio>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace tensorplay::rendezvous::scenario {
namespace {

/// One command line, cut into words; "..." keeps its spaces. NAME=VALUE words are looked up by name.
class Words {
 public:
  explicit Words(const std::string& line) : line_(line) {
    std::string word;
    bool is_quoted = false;
    bool has_word = false;
    for (const char c : line) {
      if (c == '"') {
        is_quoted = !is_quoted;
        has_word = true;
      } else if (c == ' ' && !is_quoted) {
        if (has_word) words_.push_back(std::exchange(word, {}));
        has_word = false;
      } else {
        word += c;
        has_word = true;
      }
    }
    if (has_word) words_.push_back(word);
  }

  bool is_empty() const { return at_ == words_.size(); }
  std::string next(const char* what) {
    if (is_empty()) throw std::runtime_error("'" + line_ + "': " + what + " is missing");
    return words_[at_++];
  }
  bool take(const std::string& word) {
    for (auto it = words_.begin() + static_cast<std::ptrdiff_t>(at_); it != words_.end(); ++it) {
      if (*it == word) return words_.erase(it), true;
    }
    return false;
  }
  std::optional<std::string> take_value(const std::string& name) {
    for (auto it = words_.begin() + static_cast<std::ptrdiff_t>(at_); it != words_.end(); ++it) {
      if (it->compare(0, name.size() + 1, name + "=") != 0) continue;
      const auto value = it->substr(name.size() + 1);
      words_.erase(it);
      return value;
    }
    return std::nullopt;
  }
  int take_number(const std::string& name, int otherwise) {
    const auto value = take_value(name);
    return value ? std::stoi(*value) : otherwise;
  }
  std::vector<std::string> rest() {
    std::vector<std::string> left(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    at_ = words_.size();
    return left;
  }
  void expect_end() const {
    if (!is_empty()) throw std::runtime_error("'" + line_ + "': what is '" + words_[at_] + "'?");
  }

 private:
  std::string line_;
  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

std::chrono::milliseconds duration_of(const std::string& text) {
  std::size_t end = 0;
  const double number = std::stod(text, &end);
  const auto unit = text.substr(end);
  if (unit != "s" && unit != "ms") throw std::runtime_error("'" + text + "' is not a time: 10s, 250ms");
  return std::chrono::milliseconds(static_cast<long>(unit == "s" ? number * 1000 : number));
}

std::string text_of(TimePoint when) {
  char text[32];
  std::snprintf(text, sizeof text, "%gs", std::chrono::duration<double>(when.time_since_epoch()).count());
  return text;
}

std::string join_words(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text.append(" ").append(word);
  return text;
}

/// The state of one replay.
class Stage {
 public:
  std::string play(const std::string& line) {
    Words words(line);
    auto command = words.next("a command");
    if (command == "at") {
      now_ = TimePoint(duration_of(words.next("a time")));
      command = words.next("a command");
    }
    if (command == "nodes") return start(words), "";
    if (!core_) throw std::runtime_error("'" + line + "': a scenario begins with 'nodes MIN:MAX'");
    const auto event = event_of(command, words);
    words.expect_end();
    return answer(core_->apply(event, now_));
  }

 private:
  void start(Words& words) {
    MembershipOptions options;
    const auto size = words.next("MIN:MAX");
    if (std::sscanf(size.c_str(), "%d:%d", &options.min_nodes, &options.max_nodes) != 2) {
      throw std::runtime_error("'" + size + "' is not MIN:MAX");
    }
    options.max_restarts = words.take_number("restarts", 0);
    if (const auto v = words.take_value("window")) options.restart_window = duration_of(*v);
    if (const auto v = words.take_value("last-call")) options.last_call = duration_of(*v);
    if (const auto v = words.take_value("join-timeout")) options.join_timeout = duration_of(*v);
    if (const auto v = words.take_value("replacement-wait")) options.replacement_wait = duration_of(*v);
    words.expect_end();
    core_.emplace(options);
  }

  Event event_of(const std::string& command, Words& words) {
    if (command == "tick") return Tick{};
    const auto agent = words.next("an agent");
    const int round = words.take_number("round", core_->round());
    if (command == "join") return joined(agent, words);
    if (command == "lost") {
      Lost lost{agent, "no answer for 15 s", {}};
      if (const auto v = words.take_value("gone-at")) lost.workers_gone_at = TimePoint(duration_of(*v));
      return lost;
    }
    if (command == "leave") {
      const bool is_stopping = words.take("stopping");
      return Leaving{agent, "SIGTERM", !is_stopping};
    }
    if (command == "succeeded") return Succeeded{agent, round};
    if (command == "fail") return Failed{agent, round, failure(agent, words)};
    if (command == "kill") {
      auto killed = failure(agent, words);
      killed.exit_code = 0;
      killed.signal = 9;
      return Failed{agent, round, killed};
    }
    if (command == "stopped") {
      Stopped stopped{agent, round, {}, words.take("unkillable")};
      while (!words.is_empty()) {
        stopped.failures.push_back(failure(agent, words));
        if (!words.is_empty() && words.next("and") != "and") throw std::runtime_error("failures are joined by 'and'");
      }
      return stopped;
    }
    throw std::runtime_error("'" + command + "': no such command");
  }

  Joined joined(const std::string& agent, Words& words) {
    Joined j;
    j.agent = agent;
    j.host = words.take_value("host").value_or(agent);
    j.addresses = {words.take_value("address").value_or(j.host)};
    if (const auto second = words.take_value("address")) j.addresses.push_back(*second);
    j.nproc = words.take_number("nproc", 1);
    j.role = words.take_value("role").value_or("default");
    if (const auto rank = words.take_value("rank")) j.rank_hint = std::stoi(*rank);
    j.is_store_host = words.take("store-host");
    j.port = 29500;
    hosts_[agent] = j.host;
    return j;
  }

  /// Takes the words of one failure, up to 'and' or the end.
  WorkerFailure failure(const std::string& agent, Words& words) {
    std::string line;
    std::vector<std::string> mine = words.rest();
    std::size_t used = 0;
    WorkerFailure f;
    f.host = hosts_[agent];
    f.rank = 0;
    f.exit_code = 1;
    f.ended_at = std::chrono::duration<double>(now_.time_since_epoch()).count();
    for (; used < mine.size() && mine[used] != "and"; ++used) {
      const auto& word = mine[used];
      const auto equals = word.find('=');
      const auto name = word.substr(0, equals);
      const auto value = equals == std::string::npos ? "" : word.substr(equals + 1);
      if (name == "rank")
        f.rank = std::stoi(value);
      else if (name == "exit")
        f.exit_code = std::stoi(value);
      else if (name == "signal")
        f.signal = std::stoi(value), f.exit_code = 0;
      else if (name == "by-us")
        f.stopped_by_us = true;
      else if (name == "oom")
        f.out_of_memory = true;
      else if (name == "startup")
        f.is_startup_failure = true;
      else if (name == "thrown")
        f.thrown_at = std::stod(value);
      else if (name == "ended")
        f.ended_at = std::stod(value);
      else if (name == "message")
        f.message = value;
      else if (name == "stderr")
        f.last_lines.push_back(value);
      else
        throw std::runtime_error("'" + word + "': no such part of a failure");
    }
    for (std::size_t i = used; i < mine.size(); ++i) line.append(" \"").append(mine[i]).append("\"");
    words = Words(line);
    return f;
  }

  std::string answer(const Effects& effects) {
    std::ostringstream out;
    std::string starts;
    const StartOrder* start = nullptr;
    for (const auto& [agents, order] : effects.orders) {
      if (const auto* s = std::get_if<StartOrder>(&order)) {
        start = s;
        starts += join_words(agents) + "=" + std::to_string(s->first_rank);
        if (s->role_world_size != s->world_size) {
          starts += "(role " + std::to_string(s->first_role_rank) + "/" + std::to_string(s->role_world_size) + ")";
        }
      } else if (const auto* stop = std::get_if<StopOrder>(&order)) {
        out << "  stop" << join_words(agents) << ": " << stop->why << "\n";
      } else {
        const auto& finish = std::get<FinishOrder>(order);
        out << "  finish" << join_words(agents) << " code=" << finish.exit_code << ": " << finish.why << "\n";
        for (const auto& f : finish.failures) {
          out << "    rank " << f.rank << " " << describe_end(f);
          if (f.stopped_by_us) out << ", stopped by us";
          if (f.followed_from >= 0) out << ", followed from rank " << f.followed_from;
          out << "\n";
        }
      }
    }
    if (start != nullptr) {
      out << "  start round=" << start->round << starts << " world=" << start->world_size
          << " restarts=" << start->restart_count << " master=" << start->master_addr << "\n";
    }
    for (const auto& note : effects.notes) out << "  note " << note.text << "\n";
    const auto tick = core_->next_tick();
    if (tick != tick_) out << "  wake " << (tick ? "at " + text_of(*tick) : std::string("never")) << "\n";
    tick_ = tick;
    return out.str();
  }

  std::optional<Membership> core_;
  TimePoint now_{};
  std::optional<TimePoint> tick_;
  std::map<std::string, std::string> hosts_;
};

}  // namespace

std::string replay(const std::string& text) {
  Stage stage;
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.front() == ' ') continue;  // an earlier answer
    out += line + "\n";
    if (!line.empty() && line.front() != '#') out += stage.play(line);
  }
  return out;
}

}  // namespace tensorplay::rendezvous::scenario
