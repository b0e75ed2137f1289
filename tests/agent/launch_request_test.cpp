#include "agent/launch_request.hpp"

#include "agent/usage_error.hpp"
#include "tests/agent/fake_machine.hpp"
#include "tests/support/catch.hpp"

#include <signal.h>

using namespace tensorplay::agent;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

namespace {

struct Case {
  FakeMachine machine;
  Words environment{"PATH=/usr/bin"};

  Case() { machine.add_executable("/usr/bin/true"); }

  LaunchRequest read(Words words, const std::string& called_as = "tprun") {
    words.insert(words.begin(), called_as);
    return read_launch_request({words, EnvironmentView(environment), machine});
  }
  LaunchPlan plan(Words words) {
    words.push_back("true");
    return read(std::move(words)).plan;
  }
  std::string complaint(Words words, const std::string& called_as = "tprun") {
    words.push_back("true");
    try {
      read(std::move(words), called_as);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "(none)";
  }
};

std::string place(const LaunchPlan& plan) {
  return plan.rdzv.backend + " " + plan.rdzv.endpoint + " " + plan.rdzv.run_id + " " + plan.master_addr + ":" +
         std::to_string(plan.master_port);
}

const std::string kFresh = "00000000-0000-4000-8000-000000000000";

}  // namespace

TEST_CASE("command line wins over TPRUN_, then PET_, then the file, then the default") {
  Case c;
  c.machine.add_file("job.toml", "nproc-per-node = 5\nmax-restarts = 5\nrole = 'file'\nnnodes = 5\n");
  c.environment.insert(c.environment.end(), {"PET_NPROC_PER_NODE=4", "PET_MAX_RESTARTS=4", "PET_ROLE=pet",
                                             "TPRUN_NPROC_PER_NODE=3", "TPRUN_MAX_RESTARTS=3"});
  const LaunchPlan plan = c.plan({"--config=job.toml", "--nproc-per-node=2"});
  CHECK(plan.nproc_per_node == 2);
  CHECK(plan.max_restarts == 3);
  CHECK(plan.role == "pet");
  CHECK(plan.max_nodes == 5);
  CHECK(plan.shutdown_timeout == 30s);
}

TEST_CASE("restarts may come back, and end when they help nothing") {
  Case c;
  CHECK_FALSE(c.plan({}).restart_window);
  CHECK(c.plan({}).no_progress_limit == 0);
  c.machine.add_file("job.toml", "restart-window = 3600\nno-progress-limit = '2:300'\n");
  const LaunchPlan plan = c.plan({"--config=job.toml", "--no-progress-limit=3:120"});
  CHECK(plan.restart_window == 3600s);
  CHECK(plan.no_progress_limit == 3);
  CHECK(plan.progress_after == 120s);
  CHECK(c.plan({"--no-progress-limit=4"}).progress_after == 60s);
}

TEST_CASE("a flag that PET_ turned on can be turned off by TPRUN_") {
  Case c;
  c.environment.push_back("PET_STANDALONE=1");
  c.environment.push_back("PET_RDZV_BACKEND=c10d");
  CHECK(c.plan({}).rdzv.endpoint == "localhost:0");
  c.environment.push_back("TPRUN_STANDALONE=0");
  CHECK(c.plan({}).rdzv.endpoint == "localhost:29400");
}

TEST_CASE("a bad value is named with its place and what would be right") {
  Case c;
  CHECK(c.complaint({"--nproc-per-node=two"}) ==
        "--nproc-per-node=two: not a count; give a number, 'cpu', 'gpu', 'xpu' or 'auto'");
  CHECK(c.complaint({"--nproc-per-node=0"}) == "--nproc-per-node=0: too small; give 1 or more");
  CHECK(c.complaint({"--nnodes=a"}) == "--nnodes=a: not a number of nodes; give N or MIN:MAX");
  CHECK(c.complaint({"--restart-window=0"}) == "--restart-window=0: must be above zero; give seconds");
  CHECK(c.complaint({"--no-progress-limit=-1"}) == "--no-progress-limit=-1: too small; give 0 or more");
  CHECK_THAT(c.complaint({"--no-progress-limit=3:soon"}), Catch::Contains("--no-progress-limit=3:soon"));
  CHECK(c.complaint({"--max-restarts=-1"}) == "--max-restarts=-1: too small; give 0 or more");
  CHECK(c.complaint({"--rdzv-backend=c10"}) == "--rdzv-backend=c10: no such rendezvous; did you mean c10d?");
  CHECK(c.complaint({"--stdin=some"}) == "--stdin=some: no such choice; give none, 0 or all");
  CHECK(c.complaint({"--master-port=70000"}) == "--master-port=70000: too large; give 65535 or less");
  CHECK(c.complaint({"--json"}) == "--json: belongs to --dry-run; give both");
  CHECK(c.complaint({"--monitor-interval=0"}) == "--monitor-interval=0: must be above zero; give seconds");
  CHECK(c.complaint({"--rdzv-conf=join_timeout=0"}) == "--rdzv-conf: join_timeout=0: must be above zero; give seconds");
  CHECK(c.complaint({"--logs-specs=mine"}) ==
        "--logs-specs=mine: a Python plug-in, which tprun cannot load; give --log-dir, --redirects and --tee");
  c.environment.push_back("PET_NNODES=");
  CHECK(c.complaint({}) == "PET_NNODES=: not a number of nodes; give N or MIN:MAX");
  c.environment.back() = "PET_STANDALONE=maybe";
  CHECK(c.complaint({}) == "PET_STANDALONE=maybe: neither on nor off; give 1 or 0");
  c.environment.back() = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=x";
  CHECK(c.complaint({}) == "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=x: not a time; give seconds");
}

TEST_CASE("one node without port or endpoint takes a free port and a fresh run id") {
  Case c;
  CHECK(place(c.plan({})) == "c10d localhost:0 " + kFresh + " 127.0.0.1:0");
  CHECK(place(c.plan({"--nnodes=1:1"})) == "c10d localhost:0 " + kFresh + " 127.0.0.1:0");
  CHECK(place(c.plan({"--rdzv-id=job7"})) == "c10d localhost:0 job7 127.0.0.1:0");
  CHECK(place(c.plan({"--master-addr=localhost"})) == "c10d localhost:0 " + kFresh + " localhost:0");
  CHECK(c.plan({"--master-addr=localhost"}).notes.empty());
  // The address of another host, in a line that was written for many, is no reason to fail.
  CHECK(place(c.plan({"--master-addr=h1"})) == "c10d localhost:0 " + kFresh + " 127.0.0.1:0");
  CHECK(c.plan({"--master-addr=h1"}).notes ==
        Words{"--master-addr=h1: not used by a job on one node without a port of its own"});
  CHECK(place(c.plan({"--rdzv-backend=c10d", "--master-addr=h1", "--master-port=7"})) ==
        "c10d localhost:29400 none 127.0.0.1:0");
  CHECK(place(c.plan({"--master-port=29501"})) == "static 127.0.0.1:29501 none 127.0.0.1:29501");
  CHECK(place(c.plan({"--master-addr=h1", "--master-port=1", "--rdzv-id=x"})) == "static h1:1 x h1:1");
  CHECK(place(c.plan({"--rdzv-endpoint=h1:5"})) == "static h1:5 none h1:5");
  CHECK(place(c.plan({"--rdzv-endpoint=[::1]:5", "--master-port=9"})) == "static [::1]:5 none ::1:5");
  c.environment.push_back("PET_MASTER_PORT=29502");
  CHECK(place(c.plan({})) == "static 127.0.0.1:29502 none 127.0.0.1:29502");
}

TEST_CASE("--standalone replaces the rendezvous that was given, and says so") {
  Case c;
  const LaunchPlan plan = c.plan({"--standalone", "--rdzv-id=job7", "--rdzv-backend=etcd", "--nnodes=1:4"});
  CHECK(place(plan) == "c10d localhost:0 " + kFresh + " 127.0.0.1:0");
  CHECK(plan.max_nodes == 1);
  CHECK(plan.notes.size() == 3);
  CHECK(c.complaint({"--standalone", "--nnodes=2"}) ==
        "--standalone: means this node alone, but --nnodes=2 waits for others; drop one of them");
}

TEST_CASE("many nodes are planned for every rendezvous") {
  Case c;
  CHECK(place(c.plan({"--nnodes=2"})) == "static 127.0.0.1:29500 none 127.0.0.1:29500");
  const LaunchPlan plan = c.plan({"--nnodes=2:4", "--node_rank=1", "--master_addr=n1", "--master_port=7"});
  CHECK(place(plan) == "static n1:7 none n1:7");
  CHECK(plan.rdzv.endpoints == std::vector<tensorplay::rendezvous::Endpoint>{{"n1", 7}});
  CHECK(plan.node_rank == 1);
  // As in torchrun, static waits for all.
  CHECK(plan.min_nodes == 4);
  CHECK(plan.notes ==
        Words{"--nnodes=2:4: a static rendezvous waits for all 4 nodes; for a range give --rdzv-backend=c10d"});
  CHECK(place(c.plan({"--nnodes=2", "--rdzv-backend=tcpstore", "--rdzv-endpoint=n1", "--rdzv-id=j"})) ==
        "c10d n1:29400 j 127.0.0.1:0");
  CHECK(c.plan({"--nnodes=2", "--rdzv-backend=etcd-v2", "--rdzv-endpoint=a:1,b"}).rdzv.endpoint == "a:1,b:2379");
  CHECK(c.plan({"--nnodes=2", "--rdzv-backend=file", "--rdzv-endpoint=/shared/x y"}).rdzv.endpoint == "/shared/x y");
  CHECK(c.complaint({"--nnodes=2", "--node-rank=2"}) == "--node-rank=2: there are 2 nodes; give a rank from 0 to 1");
  CHECK(c.complaint({"--nnodes=2", "--rdzv-endpoint=n1"}) ==
        "--rdzv-endpoint=n1: has no port; give HOST:PORT, or --master-addr and --master-port");
  CHECK(c.complaint({"--rdzv-backend=c10d", "--rdzv-endpoint=n1:99999"}) ==
        "--rdzv-endpoint=n1:99999: '99999' is not a port; give a number from 0 to 65535");
}

TEST_CASE("a list of endpoints is kept in order, without repetitions") {
  Case c;
  const auto plan = c.plan({"--nnodes=1:4", "--rdzv-backend=c10d",
                            "--rdzv-endpoint=n1, [fe80::1%eth0]:7,n1:29400,10.0.0.1,", "--node-rank=3"});
  CHECK(plan.rdzv.endpoint == "n1:29400,[fe80::1%eth0]:7,10.0.0.1:29400");
  CHECK(plan.rdzv.endpoints ==
        std::vector<tensorplay::rendezvous::Endpoint>{{"n1", 29400}, {"fe80::1%eth0", 7}, {"10.0.0.1", 29400}});
  CHECK(plan.notes.empty());  // The rank is a hint for the order, if all nodes have another.
  CHECK(plan.node_rank_given);
  CHECK(c.complaint({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=n1:0"}) ==
        "--rdzv-endpoint=n1:0: port 0 means any free port, which the other nodes cannot know; give a number");
}

TEST_CASE("a rendezvous by file takes a folder, also under c10d's name for it") {
  Case c;
  const auto planned = [&](Words words) {
    const auto plan = c.plan(std::move(words));
    return plan.rdzv.backend + " " + plan.rdzv.folder;
  };
  CHECK(planned({"--nnodes=2", "--rdzv-backend=file", "--rdzv-endpoint=/shared"}) == "file /shared");
  const Words c10d{"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-conf=store_type=file", "--rdzv-endpoint=/shared/x"};
  CHECK(planned(c10d) == "file /shared/x");
  c.machine.add_file("/shared/x");
  CHECK(planned(c10d) == "file /shared/x.d");
  CHECK(c.complaint({"--nnodes=2", "--rdzv-backend=file", "--rdzv-endpoint=/shared/x"}) ==
        "--rdzv-endpoint=/shared/x: is not a folder; give one that all nodes share");
  CHECK(c.complaint({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-conf=store_type=file"}) ==
        "--rdzv-backend=c10d with store_type=file: needs a folder that all nodes share; give --rdzv-endpoint=FOLDER");
}

TEST_CASE("times of the rendezvous come from --rdzv-conf, timeout for every back end") {
  Case c;
  const auto conf = [&](const std::string& text) { return c.plan({"--nnodes=2", "--rdzv-conf=" + text}).rdzv; };
  CHECK(c.plan({"--nnodes=2"}).rdzv.join_timeout == 600s);
  CHECK(c.plan({"--nnodes=2"}).rdzv.keep_alive == 15s);
  CHECK(conf("timeout=900").join_timeout == 900s);
  CHECK(conf("timeout=900,join_timeout=30").join_timeout == 30s);
  CHECK(conf("last_call_timeout=1.5,replacement_wait=0").last_call == 1500ms);
  CHECK(conf("replacement_wait=60").replacement_wait == 60s);
  CHECK(conf("keep_alive_interval=2,keep_alive_max_attempt=4").keep_alive == 8s);
  CHECK(conf("keep_alive_max_attempt=2147483647").keep_alive == std::chrono::milliseconds(2147483647));
  CHECK(conf("is_host=True").is_host == true);
  CHECK(conf("close_timeout=1,read_timeout=2,heartbeat_timeout=3").is_host == std::nullopt);
  CHECK(c.complaint({"--rdzv-conf=keep_alive_interval=0.1"}) ==
        "--rdzv-conf: keep_alive_interval times keep_alive_max_attempt is 300 ms; give 500 ms or more");
}

TEST_CASE("etcd is spoken to in plain http, under a prefix of its own") {
  Case c;
  const auto etcd = [](const std::string& conf) {
    return Words{"--nnodes=2", "--rdzv-backend=etcd", "--rdzv-endpoint=e1,e2:2380", "--rdzv-conf=" + conf};
  };
  const auto plan = c.plan(etcd("etcd_prefix=torchelastic/p2p/,protocol=http"));
  CHECK(plan.rdzv.backend == "etcd-v3");
  CHECK(plan.rdzv.endpoint == "e1:2379,e2:2380");
  CHECK(plan.rdzv.etcd_prefix == "/torchelastic/p2p");
  CHECK(plan.notes.empty());
  CHECK(c.plan(etcd("ca_cert=/x")).notes ==
        Words{"--rdzv-conf: ca_cert=/x: not used: tprun speaks plain http to etcd"});
  CHECK(
      c.complaint(etcd("protocol=https")) ==
      "--rdzv-conf: protocol=https: tprun speaks plain http to etcd, so that it need not load TLS at each start; give "
      "http and an etcd that listens for it (a local proxy: etcd grpc-proxy)");
}

TEST_CASE("the secret's file is planned, its words are not an option") {
  Case c;
  c.environment.push_back("TPRUN_RDZV_TOKEN=0123456789abcdef");
  const auto plan = c.plan({"--rdzv-token-file=/etc/secret"});
  CHECK(plan.rdzv.token_file == "/etc/secret");
  CHECK(plan.notes.empty());
}

TEST_CASE("workers are counted by CPUs this process may use, or by GPUs") {
  Case c;
  CHECK(c.plan({"--nproc-per-node=cpu"}).nproc_per_node == 4);
  CHECK(c.plan({"--nproc-per-node=auto"}).nproc_per_node == 4);
  CHECK(c.complaint({"--nproc-per-node=gpu"}) ==
        "--nproc-per-node=gpu: there is no GPU to be seen here; give a number, 'cpu' or 'auto'");
  c.machine.nvidia = {{"GPU-1", "0000:01:00.0", {}, false}, {"GPU-2", "0000:02:00.0", {}, false}};
  CHECK(c.plan({"--nproc-per-node=gpu"}).nproc_per_node == 2);
  CHECK(c.plan({"--nproc-per-node=auto"}).nproc_per_node == 2);
  c.environment.push_back("CUDA_VISIBLE_DEVICES=");
  CHECK(c.plan({"--nproc-per-node=auto"}).nproc_per_node == 4);
  CHECK(c.complaint({"--nproc-per-node=gpu"}).find("CUDA_VISIBLE_DEVICES is ''") != std::string::npos);
}

TEST_CASE("a virtual local rank needs a listed device for every worker") {
  Case c;
  c.environment.push_back("CUDA_VISIBLE_DEVICES=0,1");
  CHECK(c.plan({"--virtual-local-rank", "--nproc-per-node=2"}).virtual_local_rank);
  CHECK(
      c.complaint({"--virtual-local-rank", "--nproc-per-node=3"}) ==
      "--virtual-local-rank: 3 workers but 2 entries in CUDA_VISIBLE_DEVICES=0,1; give --nproc-per-node=2 or list more "
      "devices");
}

TEST_CASE("grace is the option's, else torch's variable, else what the scheduler leaves, else 30 seconds") {
  Case c;
  c.environment.push_back("SLURM_JOB_ID=1");
  CHECK(c.plan({}).shutdown_timeout == 30s);
  c.machine.add_file("/etc/slurm/slurm.conf", "# KillWait=9\nkillwait = 60 # seconds\n");
  CHECK(c.plan({}).shutdown_timeout == 55s);
  CHECK(c.plan({"--scheduler=none"}).shutdown_timeout == 30s);
  c.machine.add_file("/etc/slurm/slurm.conf", "ClusterName=x\n");
  CHECK(c.plan({}).shutdown_timeout == 25s);
  c.environment.push_back("TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7");
  CHECK(c.plan({}).shutdown_timeout == 7s);
  CHECK(c.plan({"--shutdown-timeout=0"}).shutdown_timeout == 0s);
  CHECK(c.complaint({"--shutdown-timeout=-1"}) ==
        "--shutdown-timeout=-1: a time cannot be negative; give 0 or more seconds");
}

TEST_CASE("options that mean something in Python only are accepted with a line") {
  Case c;
  CHECK(c.plan({}).notes.empty());
  CHECK(c.plan({"--logs-specs=default", "--event-log-handler=null"}).notes.empty());
  const auto notes = c.plan({"--start-method=fork", "--event-log-handler=console", "--monitor-interval=0.1"}).notes;
  CHECK(notes ==
        Words{"--start-method=fork: accepted, but has no effect: workers are programs, not functions",
              "--event-log-handler=console: accepted, but has no effect: events are not written; --report writes "
              "how the job went",
              "--monitor-interval=0.1: accepted, but has no effect: tprun is told of a worker's end and never "
              "polls"});
}

TEST_CASE("a misspelt variable of ours is noted and a foreign PET_ variable is not") {
  Case c;
  c.environment.push_back("TPRUN_NPROC_PER_NODES=4");
  c.environment.push_back("PET_NAME=rex");
  c.environment.push_back("TPRUN_WORKER=1.0.0");  // An outer tprun's mark.
  c.environment.push_back("PET_R=3");
  const LaunchPlan plan = c.plan({});
  CHECK(plan.notes ==
        Words{"TPRUN_NPROC_PER_NODES: names no option and is ignored; did you mean TPRUN_NPROC_PER_NODE?"});
  CHECK(plan.logging.redirects.all == 0);
}

TEST_CASE("output settings arrive in the plan") {
  Case c;
  c.environment.push_back("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=<${rank}>");
  c.machine.add_file("taken");
  const LaunchPlan plan = c.plan({"-r3", "-t", "0:1,11:2", "--log-dir=l", "--local-ranks-filter=0,3",
                                  "--duplicate-stdout-filters=a,,b,c", "--report=r.json"});
  CHECK(plan.logging.redirects.all == 3);
  CHECK(plan.logging.tee.mask_for(11) == kStderr);
  CHECK(plan.logging.line_prefix_template == "<${rank}>");
  CHECK(plan.logging.local_ranks_filter == std::vector<int>{0, 3});
  CHECK(plan.logging.duplicate_stdout_filters == Words{"a,b", "c"});
  CHECK(plan.report_file == "r.json");
  CHECK(c.complaint({"--log-dir=taken"}) == "--log-dir=taken: is not a folder; give one, or a name that is free");
}

TEST_CASE("the name tprun is called by decides the front") {
  Case c;
  CHECK(c.read({"true"}, "/venv/bin/torchrun").plan.front == Front::kTorchrun);
  const LaunchPlan legacy = c.read({"true", "a"}, "tplaunch").plan;
  CHECK(legacy.front == Front::kTplaunch);
  CHECK(legacy.program.appends_local_rank);
  CHECK_FALSE(c.read({"--use-env", "true"}, "tplaunch").plan.program.appends_local_rank);
  CHECK(c.complaint({"--no-python"}, "tplaunch") ==
        "--no-python: the program would be given --local-rank=N; give --use-env too");
  CHECK(c.complaint({"--no-python", "-m"}) == "--no-python: a module needs Python; drop it or --module");
}

TEST_CASE("help, version and completion need no program and no good environment") {
  Case c;
  c.environment.push_back("PET_NNODES=zz");
  CHECK(c.read({"--help"}).action == Action::kHelp);
  CHECK(c.read({"--nnodes=2", "-h"}).action == Action::kHelp);
  CHECK(c.read({"--version"}).action == Action::kVersion);
  CHECK(c.read({"--print-completion=zsh"}).shell == "zsh");
  CHECK_THROWS_AS(c.read({"--print-completion=ksh"}), UsageError);
}

TEST_CASE("without a program tprun says how to give one") {
  Case c;
  CHECK_THROWS_WITH(c.read({"--nnodes=1"}),
                    "no program given; say what to run: tprun [options] PROGRAM [arguments], or see --help");
}

TEST_CASE("stop signals are torchrun's unless others are named") {
  Case c;
  CHECK(c.plan({}).stop_signals == std::vector<int>{SIGTERM, SIGINT, SIGHUP, SIGQUIT});
  CHECK(c.plan({"--signals-to-handle=SIGUSR2"}).stop_signals == std::vector<int>{SIGUSR2});
  CHECK(c.plan({"--signals-to-handle=SIGUSR2"}).signals_to_handle == "SIGUSR2");
}
