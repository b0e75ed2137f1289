#include "agent/rendezvous_plan.hpp"

#include "agent/endpoint.hpp"
#include "agent/near_miss.hpp"
#include "agent/option_values.hpp"
#include "agent/scheduler_choice.hpp"
#include "agent/usage_error.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace tensorplay::agent {
namespace {

constexpr std::uint16_t kStaticPort = 29500;
constexpr std::uint16_t kC10dPort = 29400;
constexpr std::uint16_t kEtcdPort = 2379;
constexpr std::chrono::milliseconds kLeastKeepAlive{500};

std::string find_backend(const Settings& settings) {
  const std::string name = settings.value_or(OptionId::kRdzvBackend, "static");
  if (name == "static" || name == "c10d" || name == "etcd-v3" || name == "file") return name;
  if (name == "tcpstore") return "c10d";
  if (name == "etcd" || name == "etcd-v2") return "etcd-v3";
  const auto guess = near_miss(name, {"static", "c10d", "tcpstore", "etcd", "etcd-v2", "etcd-v3", "file"});
  throw UsageError(settings.quoted(OptionId::kRdzvBackend) + ": no such rendezvous; " +
                   (guess ? "did you mean " + std::string(*guess) + "?" : "give static, c10d, etcd-v3 or file"));
}

class RendezvousPlanner {
 public:
  RendezvousPlanner(const Settings& settings, const Machine& machine, const SchedulerFacts& scheduler, LaunchPlan& plan)
      : settings_(settings), machine_(machine), scheduler_(scheduler), plan_(plan), rdzv_(plan.rdzv) {}

  void make() {
    rdzv_.backend = find_backend(settings_);
    rdzv_.run_id = settings_.value_or(OptionId::kRdzvId, scheduler_.run_id);
    if (rdzv_.run_id.empty()) rdzv_.run_id = "none";
    read_conf();
    read_node_rank();
    read_master();
    plan_.local_addr = settings_.value_or(OptionId::kLocalAddr, "");
    if (settings_.is_on(OptionId::kStandalone)) {
      be_standalone();
    } else if (plan_.max_nodes > 1 && !scheduler_.hosts.empty() && !gives_rendezvous(settings_)) {
      plan_scheduled();
    } else if (rdzv_.backend == "static") {
      plan_static();
    } else {
      plan_dynamic();
    }
  }

 private:
  void read_conf() {
    rdzv_.token_file = settings_.value_or(OptionId::kRdzvTokenFile, "");
    if (!settings_.is_given(OptionId::kRdzvConf)) return;
    const std::string& where = settings_.find(OptionId::kRdzvConf)->place;
    rdzv_.conf = parse_rdzv_conf(where, settings_.find(OptionId::kRdzvConf)->value, plan_.notes);
    for (const auto& [key, value] : rdzv_.conf) {
      const std::string named = where + ": " + key + "=" + value;
      if (key == "is_host") rdzv_.is_host = parse_switch(named, value);
      if (key == "keep_alive_max_attempt") parse_whole(named, value, 1, std::numeric_limits<int>::max(), "a count");
      if (key.ends_with("timeout") || key == "keep_alive_interval") {
        if (parse_seconds(named, value, 0).count() == 0) throw UsageError(named + ": must be above zero; give seconds");
      }
      if (key == "cas_backoff_max_seconds") parse_seconds(named, value, 0);
      if (key == "replacement_wait") rdzv_.replacement_wait = parse_seconds(named, value, 0);
      if (key == "store_type" && value != "tcp" && value != "file") {
        throw UsageError(named + ": no such store; give tcp or file");
      }
    }
    read_timings(where);
  }

  /// `timeout` is what torchrun's static and etcd call join_timeout: here it is the same for all.
  void read_timings(const std::string& where) {
    const auto seconds = [&](const char* key, std::chrono::milliseconds fallback) {
      const auto found = rdzv_.conf.find(key);
      if (found == rdzv_.conf.end()) return fallback;
      return parse_seconds(where + ": " + key + "=" + found->second, found->second, 0);
    };
    rdzv_.join_timeout = seconds("join_timeout", seconds("timeout", rdzv_.join_timeout));
    rdzv_.last_call = seconds("last_call_timeout", rdzv_.last_call);
    const auto attempts = rdzv_.conf.find("keep_alive_max_attempt");
    const double count = attempts == rdzv_.conf.end() ? 3 : std::stod(attempts->second);
    const auto interval = seconds("keep_alive_interval", std::chrono::seconds(5));
    constexpr double kMostMilliseconds = std::numeric_limits<std::int32_t>::max();
    rdzv_.keep_alive = std::chrono::milliseconds(
        static_cast<std::int64_t>(std::min(static_cast<double>(interval.count()) * count, kMostMilliseconds)));
    // Pings go out several times in that span, over a network that may hold one up.
    if (rdzv_.keep_alive < kLeastKeepAlive) {
      throw UsageError(where + ": keep_alive_interval times keep_alive_max_attempt is " +
                       std::to_string(rdzv_.keep_alive.count()) + " ms; give " +
                       std::to_string(kLeastKeepAlive.count()) + " ms or more");
    }
  }

  void read_node_rank() {
    if (scheduler_.nodes || !scheduler_.hosts.empty()) {
      rdzv_.node_index = plan_.node_rank = scheduler_.node_index;
      if (scheduler_.nodes) rdzv_.hosts = scheduler_.hosts;
    }
    const Setting* rank = settings_.find(OptionId::kNodeRank);
    if (rank == nullptr) return;
    plan_.node_rank_given = true;
    plan_.node_rank = static_cast<int>(parse_whole(settings_.quoted(OptionId::kNodeRank), rank->value, 0,
                                                   std::numeric_limits<int>::max(), "a node's index"));
  }

  void read_master() {
    plan_.master_addr = settings_.value_or(OptionId::kMasterAddr, "127.0.0.1");
    if (plan_.master_addr.empty()) plan_.master_addr = "127.0.0.1";
    if (plan_.master_addr.starts_with('[') && plan_.master_addr.ends_with(']')) {
      plan_.master_addr = plan_.master_addr.substr(1, plan_.master_addr.size() - 2);
    }
    const Setting* port = settings_.find(OptionId::kMasterPort);
    if (port == nullptr) return;
    plan_.master_port = static_cast<std::uint16_t>(
        parse_whole(settings_.quoted(OptionId::kMasterPort), port->value, 0, 65535, "a port"));
  }

  void be_standalone() {
    for (const OptionId id : {OptionId::kRdzvBackend, OptionId::kRdzvEndpoint, OptionId::kRdzvId}) {
      if (settings_.is_given(id)) plan_.notes.push_back("--standalone: " + settings_.quoted(id) + " is not used");
    }
    if (plan_.min_nodes > 1) {
      throw UsageError("--standalone: means this node alone, but " + settings_.quoted(OptionId::kNnodes) +
                       " waits for others; drop one of them");
    }
    if (plan_.max_nodes > 1) {
      plan_.notes.push_back("--standalone: this node is alone; " + settings_.quoted(OptionId::kNnodes) +
                            " is taken for 1");
      plan_.max_nodes = 1;
    }
    alone();
    rdzv_.run_id = machine_.fresh_uuid();
  }

  /// A free port on this node, under a name that no other run has.
  void alone() {
    rdzv_.backend = "c10d";
    rdzv_.endpoint = "localhost:0";
    rdzv_.endpoints = {{"localhost", 0}};
    if (rdzv_.run_id == "none") rdzv_.run_id = machine_.fresh_uuid();
    leave_master_to_agent("a job on one node without a port of its own");
    if (plan_.node_rank_given && plan_.node_rank != 0) {
      plan_.notes.push_back(settings_.quoted(OptionId::kNodeRank) + ": not used by a job on one node");
    }
    plan_.node_rank = 0;
  }

  /// On the first hosts of the job, at ports that all nodes derive from the job's name. The hosts first: a port that is
  /// taken on one of them moves the meeting to the next host, and a lost host is followed by another one.
  void plan_scheduled() {
    constexpr std::size_t kHosts = 3;
    const auto& places = scheduler_.meeting.empty() ? scheduler_.hosts : scheduler_.meeting;
    const std::size_t hosts = std::min({kHosts, places.size(), static_cast<std::size_t>(plan_.max_nodes)});
    rdzv_.backend = "c10d";
    for (const std::uint16_t port : scheduler_.ports) {
      for (std::size_t i = 0; i < hosts; ++i) {
        const std::string& host = places[i];
        rdzv_.endpoints.push_back({host, port});
        rdzv_.endpoint += (rdzv_.endpoint.empty() ? "" : ",") + format_endpoint(host, port);
      }
    }
    leave_master_to_agent("the rendezvous of a " + scheduler_.name + " job");
  }

  void plan_static() {
    const bool has_endpoint = !settings_.value_or(OptionId::kRdzvEndpoint, "").empty();
    if (!has_endpoint && !settings_.is_given(OptionId::kMasterPort) && plan_.max_nodes == 1) return alone();
    if (has_endpoint) {
      const std::string where = settings_.quoted(OptionId::kRdzvEndpoint);
      const Endpoint endpoint = parse_endpoint(where, settings_.find(OptionId::kRdzvEndpoint)->value);
      if (endpoint.host.empty()) throw UsageError(where + ": has no host; give HOST:PORT");
      if (!endpoint.port) throw UsageError(where + ": has no port; give HOST:PORT, or --master-addr and --master-port");
      plan_.master_addr = endpoint.host;
      plan_.master_port = *endpoint.port;
    } else if (!settings_.is_given(OptionId::kMasterPort)) {
      plan_.master_port = kStaticPort;
    }
    if (plan_.min_nodes != plan_.max_nodes) {
      plan_.notes.push_back(settings_.quoted(OptionId::kNnodes) + ": a static rendezvous waits for all " +
                            std::to_string(plan_.max_nodes) + " nodes; for a range give --rdzv-backend=c10d");
      plan_.min_nodes = plan_.max_nodes;
    }
    if (plan_.node_rank >= plan_.max_nodes) {
      throw UsageError((plan_.node_rank_given ? settings_.quoted(OptionId::kNodeRank) : plan_.scheduler) + ": there " +
                       (plan_.max_nodes == 1 ? "is 1 node" : "are " + std::to_string(plan_.max_nodes) + " nodes") +
                       "; give a rank from 0 to " + std::to_string(plan_.max_nodes - 1));
    }
    rdzv_.endpoint = format_endpoint(plan_.master_addr, plan_.master_port);
    rdzv_.endpoints = {{plan_.master_addr, plan_.master_port}};
  }

  void plan_dynamic() {
    const auto store_type = rdzv_.conf.find("store_type");
    const bool is_file_store = store_type != rdzv_.conf.end() && store_type->second == "file";
    if (rdzv_.backend == "file" || (rdzv_.backend == "c10d" && is_file_store)) {
      plan_file();
    } else {
      plan_endpoints(rdzv_.backend == "c10d" ? kC10dPort : kEtcdPort);
      if (rdzv_.backend == "etcd-v3") plan_etcd();
    }
    leave_master_to_agent("--rdzv-backend=" + rdzv_.backend);
  }

  void plan_etcd() {
    for (const auto& [key, value] : rdzv_.conf) {
      const std::string named = settings_.find(OptionId::kRdzvConf)->place + ": " + key + "=" + value;
      if (key == "protocol" && value != "http") {
        throw UsageError(named +
                         ": tprun speaks plain http to etcd, so that it need not load TLS at each start; give "
                         "http and an etcd that listens for it (a local proxy: etcd grpc-proxy)");
      }
      if (key == "ssl_cert" || key == "ssl_cert_key" || key == "ca_cert" || key == "cacert" || key == "cert" ||
          key == "key") {
        plan_.notes.push_back(named + ": not used: tprun speaks plain http to etcd");
      }
      if (key == "etcd_prefix") {
        rdzv_.etcd_prefix = value.starts_with('/') ? value : "/" + value;
        while (rdzv_.etcd_prefix.ends_with('/')) rdzv_.etcd_prefix.pop_back();
      }
    }
  }

  void plan_file() {
    rdzv_.endpoint = rdzv_.folder = settings_.value_or(OptionId::kRdzvEndpoint, "");
    if (rdzv_.folder.empty() && (rdzv_.backend == "file" || plan_.max_nodes > 1)) {
      throw UsageError("--rdzv-backend=" + rdzv_.backend + (rdzv_.backend == "file" ? "" : " with store_type=file") +
                       ": needs a folder that all nodes share; give --rdzv-endpoint=FOLDER");
    }
    // torchrun's c10d keeps its state in a file of that name, which may be there from an earlier run.
    if (machine_.kind_of(rdzv_.folder) == FileKind::kFile) {
      if (rdzv_.backend == "file") {
        throw UsageError(settings_.quoted(OptionId::kRdzvEndpoint) +
                         ": is not a folder; give one that all nodes share");
      }
      rdzv_.folder += ".d";
    }
    rdzv_.backend = "file";
  }

  void plan_endpoints(std::uint16_t usual_port) {
    const std::string written = settings_.value_or(OptionId::kRdzvEndpoint, "");
    const std::string where = written.empty() ? "--rdzv-endpoint" : settings_.quoted(OptionId::kRdzvEndpoint);
    for (const std::string_view part : split(written, ',')) {
      if (trimmed(part).empty() && !rdzv_.endpoints.empty()) continue;  // A comma too many harms nobody.
      const Endpoint endpoint = parse_endpoint(where, part);
      const rendezvous::Endpoint meeting{endpoint.host.empty() ? "localhost" : endpoint.host,
                                         endpoint.port.value_or(usual_port)};
      if (meeting.port == 0 && plan_.max_nodes > 1) {
        throw UsageError(where + ": port 0 means any free port, which the other nodes cannot know; give a number");
      }
      if (std::find(rdzv_.endpoints.begin(), rdzv_.endpoints.end(), meeting) != rdzv_.endpoints.end()) continue;
      rdzv_.endpoint += (rdzv_.endpoint.empty() ? "" : ",") + format_endpoint(meeting.host, meeting.port);
      rdzv_.endpoints.push_back(meeting);
    }
  }

  /// RANK 0's agent chooses address and port. One that was given is dropped, as torchrun does: it may be that of
  /// another host, in a line that was written for many. A name of this host's loopback can stay.
  void leave_master_to_agent(const std::string& by) {
    const std::string& given = plan_.master_addr;
    const bool is_loopback = given == "localhost" || given == "::1" || given.starts_with("127.");
    for (const OptionId id : {OptionId::kMasterAddr, OptionId::kMasterPort}) {
      if (!settings_.is_given(id) || (id == OptionId::kMasterAddr && is_loopback)) continue;
      plan_.notes.push_back(settings_.quoted(id) + ": not used by " + by);
    }
    if (!is_loopback) plan_.master_addr = "127.0.0.1";
    plan_.master_port = 0;
  }

  const Settings& settings_;
  const Machine& machine_;
  const SchedulerFacts& scheduler_;
  LaunchPlan& plan_;
  RendezvousPlan& rdzv_;
};

}  // namespace

void plan_rendezvous(const Settings& settings, const Machine& machine, const SchedulerFacts& scheduler,
                     LaunchPlan& plan) {
  RendezvousPlanner(settings, machine, scheduler, plan).make();
}

}  // namespace tensorplay::agent
