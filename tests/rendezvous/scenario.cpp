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
    std::string answers;
    if (command == "at") {
      const TimePoint then(duration_of(words.next("a time")));
      command = words.next("a command");
      if (command == "thawed") {
        command = words.next("a command");
      } else if (core_ && options_.can_be_succeeded) {
        answers = beat_until(then);
      }
      now_ = then;
    }
    if (command == "nodes") return start(words), "";
    if (!core_) throw std::runtime_error("'" + line + "': a scenario begins with 'nodes MIN:MAX'");
    const auto event = event_of(command, words);
    words.expect_end();
    return answers + answer(core_->apply(event, now_));
  }

 private:
  /// Where others may take over the core wants to be woken often, to notice when it stood still.
  std::string beat_until(TimePoint then) {
    std::string answers;
    for (auto tick = core_->next_tick(); tick && *tick < then; tick = core_->next_tick()) {
      now_ = std::max(now_, *tick);
      const auto answered = answer(core_->apply(Tick{}, now_));
      if (!answered.empty()) answers += "  (" + text_of(now_) + ")\n" + answered;
    }
    return answers;
  }

  void start(Words& words) {
    MembershipOptions options;
    const auto size = words.next("MIN:MAX");
    if (std::sscanf(size.c_str(), "%d:%d", &options.min_nodes, &options.max_nodes) != 2) {
      throw std::runtime_error("'" + size + "' is not MIN:MAX");
    }
    options.restarts.max_restarts = words.take_number("restarts", 0);
    options.restarts.no_progress_limit = words.take_number("no-progress", 0);
    if (const auto v = words.take_value("window")) options.restarts.window = duration_of(*v);
    if (const auto v = words.take_value("progress-after")) options.restarts.progress_after = duration_of(*v);
    if (const auto v = words.take_value("place")) options.place = *v;
    if (const auto v = words.take_value("expected")) {
      std::istringstream hosts(*v);
      for (std::string host; hosts >> host;) options.expected_hosts.push_back(host);
    }
    options.expects_node_ranks = words.take("node-ranks");
    options.is_successor = words.take("successor");
    options.can_be_succeeded = words.take("endpoints") || options.is_successor;
    options.epoch = static_cast<std::uint64_t>(words.take_number("epoch", options.is_successor ? 2 : 1));
    if (const auto v = words.take_value("lease")) options.lease = duration_of(*v);
    if (const auto v = words.take_value("last-call")) options.last_call = duration_of(*v);
    if (const auto v = words.take_value("join-timeout")) options.join_timeout = duration_of(*v);
    if (const auto v = words.take_value("replacement-wait")) options.replacement_wait = duration_of(*v);
    words.expect_end();
    core_.emplace(options);
    options_ = options;
  }

  Event event_of(const std::string& command, Words& words) {
    if (command == "tick") return Tick{};
    if (command == "succeeded-by") return Succession{words.next("a place")};
    const auto agent = words.next("an agent");
    const int round = words.take_number("round", core_->round());
    if (command == "join") return joined(agent, words);
    if (command == "lost") {
      Lost lost{agent, "no answer for 15 s", {}, words.take("for-certain")};
      if (const auto v = words.take_value("gone-at")) lost.workers_gone_at = TimePoint(duration_of(*v));
      return lost;
    }
    if (command == "leave") {
      const bool is_stopping = words.take("stopping");
      return Leaving{agent, "SIGTERM", !is_stopping};
    }
    if (command == "succeeded") return Succeeded{agent, round};
    if (command == "started") return Started{agent, round};
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
    while (const auto past = words.take_value("past")) j.past.push_back(past_world(*past));
    j.seen_epoch = j.past.empty() ? 0 : j.past.back().epoch;
    j.seen_epoch = static_cast<std::uint64_t>(words.take_number("seen", static_cast<int>(j.seen_epoch)));
    j.port = 29500;
    hosts_[agent] = j.host;
    return j;
  }

  /// EPOCH.ROUND:RANK/SIZE, with ! when it is confirmed, and +RESTARTS.
  static PastWorld past_world(const std::string& text) {
    PastWorld past;
    int epoch = 0;
    int used = 0;
    if (std::sscanf(text.c_str(), "%d.%d:%d/%d%n", &epoch, &past.round, &past.group_rank, &past.group_world_size,
                    &used) != 4) {
      throw std::runtime_error("'" + text + "' is not EPOCH.ROUND:RANK/SIZE");
    }
    past.epoch = static_cast<std::uint64_t>(epoch);
    past.is_confirmed = text.find('!') != text.npos;
    if (const auto plus = text.find('+'); plus != text.npos) {
      past.restart_count = past.recent_restarts = std::stoi(text.substr(plus + 1));
    }
    return past;
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
        out << "  stop" << (stop->at_once ? " at once" : "") << join_words(agents) << ": " << stop->why << "\n";
      } else if (const auto* news = std::get_if<NewsOrder>(&order)) {
        out << (news->is_status ? "  status" : "  tell") << join_words(agents) << ": " << news->text;
        if (news->limit_seconds > 0) out << " (" << news->waited_seconds << " s of " << news->limit_seconds << " s)";
        out << "\n";
      } else if (std::holds_alternative<ConfirmedOrder>(order)) {
        out << "  confirmed" << join_words(agents) << "\n";
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
          << " restarts=" << start->restart_count << " master=" << start->master_addr;
      if (start->wants_confirmation) out << " epoch=" << start->epoch;
      out << "\n";
    }
    for (const auto& note : effects.notes) out << "  note " << note.text << "\n";
    const auto tick = core_->next_tick();
    const bool is_beat = options_.can_be_succeeded && tick == now_ + stall_limit(options_) / 2;
    if (tick != tick_ && !is_beat) out << "  wake " << (tick ? "at " + text_of(*tick) : std::string("never")) << "\n";
    tick_ = tick;
    return out.str();
  }

  std::optional<Membership> core_;
  TimePoint now_{};
  std::optional<TimePoint> tick_;
  MembershipOptions options_;
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
