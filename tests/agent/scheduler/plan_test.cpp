// What the facts of a scheduler become in a plan, and what the user's options leave of them.
#include "agent/launch_request.hpp"
#include "agent/scheduler/variables.hpp"
#include "agent/usage_error.hpp"
#include "tests/agent/fake_machine.hpp"
#include "tests/agent/scheduler/recorded.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_files.hpp"

#include <regex>

using namespace tensorplay::agent;
using Words = std::vector<std::string>;

namespace {

struct Case {
  FakeMachine machine;
  Words environment;

  explicit Case(Words environment_) : environment(std::move(environment_)) {
    environment.push_back("PATH=/usr/bin");
    machine.add_executable("/usr/bin/true");
  }
  LaunchPlan plan(Words words = {}) const {
    words.insert(words.begin(), "tprun");
    words.push_back("true");
    return read_launch_request({words, EnvironmentView(environment), machine}).plan;
  }
  std::string complaint(Words words) const {
    try {
      plan(std::move(words));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "(none)";
  }
};

const std::string kFresh = "00000000-0000-4000-8000-000000000000";

}  // namespace

TEST_CASE("srun without any rendezvous option makes a world of its nodes") {
  const LaunchPlan plan = Case(recorded::slurm_step("n[1-3]", 3, 1)).plan({"--nproc-per-node=2"});
  CHECK(plan.min_nodes == 3);
  CHECK(plan.max_nodes == 3);
  CHECK(plan.rdzv.backend == "c10d");
  CHECK(plan.rdzv.run_id == "slurm-42.0");
  CHECK(plan.rdzv.node_index == 1);
  CHECK(plan.node_rank == 1);
  CHECK_FALSE(plan.node_rank_given);
  CHECK(plan.rdzv.hosts == Words{"n1", "n2", "n3"});
  REQUIRE(plan.rdzv.endpoints.size() == 9);
  CHECK(plan.rdzv.endpoints[0].host == "n1");
  CHECK(plan.rdzv.endpoints[1] == tensorplay::rendezvous::Endpoint{"n2", plan.rdzv.endpoints[0].port});
  CHECK(plan.rdzv.endpoints[3].host == "n1");
  CHECK(plan.rdzv.endpoints[3].port != plan.rdzv.endpoints[0].port);
  CHECK(plan.rdzv.endpoint.starts_with("n1:" + std::to_string(plan.rdzv.endpoints[0].port) + ",n2:"));
  CHECK(plan.nproc_per_node == 2);
  CHECK_FALSE(plan.says_scheduler);  // The first node says it for all.
  CHECK(Case(recorded::slurm_step("n[1-3]", 3, 0)).plan().says_scheduler);
}

TEST_CASE("what the user says about nodes wins over the scheduler") {
  const Case c(recorded::slurm_step("n[1-3]", 3, 1));
  CHECK(c.plan({"--nnodes=1"}).rdzv.endpoint == "localhost:0");
  CHECK(c.plan({"--nnodes=1"}).rdzv.run_id == kFresh);
  CHECK(c.plan({"--standalone"}).rdzv.endpoint == "localhost:0");
  CHECK(c.plan({"--scheduler=none"}).max_nodes == 1);
  CHECK(c.plan({"--nnodes=2"}).max_nodes == 2);
  CHECK(c.plan({"--nnodes=2"}).rdzv.endpoints.size() == 6);
  CHECK(c.plan({"--nnodes=2:8"}).min_nodes == 2);
  CHECK(c.plan({"--nnodes=2:8"}).max_nodes == 3);
  CHECK(c.plan({"--rdzv-id=mine"}).rdzv.run_id == "mine");
  CHECK(c.plan({"--rdzv-conf=join_timeout=9"}).max_nodes == 3);
  CHECK(c.complaint({"--nnodes=4"}) ==
        "--nnodes=4: SLURM job 42, step 0: node 1 of 3 (n1 n2 n3); give no more, or --rdzv-endpoint for nodes from "
        "elsewhere");
}

TEST_CASE("any option or variable that says how to meet leaves the scheduler out") {
  const Case c(recorded::slurm_step("n[1-3]", 3, 1));
  for (const char* option : {"--rdzv-backend=c10d", "--rdzv-endpoint=h:1", "--master-port=7", "--node-rank=0"}) {
    INFO(option);
    CHECK(c.plan({option}).max_nodes == 1);
    CHECK_FALSE(c.plan({option}).rdzv.node_index);
  }
  Case pet(recorded::slurm_step("n[1-3]", 3, 1));
  pet.environment.push_back("PET_RDZV_ENDPOINT=h:1");
  CHECK(pet.plan().max_nodes == 1);
}

TEST_CASE("torchrun's usual lines in a SLURM script mean what they mean there") {
  const Case c(recorded::slurm_step("n[1-3]", 3, 2));
  const LaunchPlan fixed =
      c.plan({"--nnodes=3", "--nproc_per_node=2", "--node_rank=2", "--master_addr=n1", "--master_port=29501"});
  CHECK(fixed.rdzv.backend == "static");
  CHECK(fixed.rdzv.endpoint == "n1:29501");
  CHECK(fixed.node_rank == 2);
  const LaunchPlan dynamic =
      c.plan({"--nnodes=3", "--nproc_per_node=2", "--rdzv_id=42", "--rdzv_backend=c10d", "--rdzv_endpoint=n1:29500"});
  CHECK(dynamic.rdzv.endpoint == "n1:29500");
  CHECK(dynamic.rdzv.run_id == "42");
}

TEST_CASE("a scheduler that is named adds to the options what they leave open") {
  const LaunchPlan plan = Case(recorded::slurm_step("n[1-3]", 3, 2))
                              .plan({"--scheduler=slurm", "--rdzv-backend=c10d", "--rdzv-endpoint=head:1"});
  CHECK(plan.rdzv.endpoint == "head:1");
  CHECK(plan.max_nodes == 3);
  CHECK(plan.rdzv.node_index == 2);
  CHECK(plan.rdzv.run_id == "slurm-42.0");
}

TEST_CASE("a step on one node is alone, under the job's name") {
  const LaunchPlan plan = Case(recorded::slurm_step("n2", 1, 0)).plan();
  CHECK(plan.max_nodes == 1);
  CHECK(plan.rdzv.endpoint == "localhost:0");
  CHECK(plan.rdzv.run_id == "slurm-42.0");
  CHECK(plan.scheduler == "SLURM job 42, step 0: one node");
  CHECK_FALSE(plan.says_scheduler);
}

TEST_CASE("a batch script without srun runs as under torchrun, with the hint among the notes") {
  const Case c(recorded::slurm_batch_script());
  CHECK(c.plan().max_nodes == 1);
  CHECK(c.plan().rdzv.run_id == kFresh);
  CHECK(c.plan().notes.size() == 1);
  CHECK(c.plan({"--nnodes=1"}).notes.empty());
}

TEST_CASE("GPUs of the step are counted unless the user gives a number of workers") {
  auto env = recorded::slurm_step("n[1-3]", 3, 0);
  env.push_back("SLURM_GPUS_ON_NODE=4");
  CHECK(Case(env).plan().nproc_per_node == 4);
  CHECK(Case(env).plan({"--nproc-per-node=2"}).nproc_per_node == 2);
}

TEST_CASE("the training operator's PET_ variables are a rendezvous of their own") {
  const LaunchPlan plan = Case(recorded::training_operator()).plan();
  CHECK(plan.rdzv.backend == "static");
  CHECK(plan.rdzv.endpoint == "job-master-0:23456");
  CHECK(plan.max_nodes == 2);
  CHECK(plan.node_rank == 1);
}

TEST_CASE("pods of an indexed job need to be told their number") {
  Case c({"JOB_COMPLETION_INDEX=1"});
  c.machine.host = "train-1.workers";
  CHECK(c.complaint({"--scheduler=kubernetes"}) ==
        "Kubernetes job train: index 1: how many nodes the job has is not told; give --nnodes");
  const LaunchPlan plan = c.plan({"--scheduler=kubernetes", "--nnodes=2"});
  CHECK(plan.max_nodes == 2);
  CHECK(plan.rdzv.node_index == 1);
  CHECK(plan.rdzv.endpoints[0].host == "train-0.workers");
  CHECK(plan.rdzv.endpoints[1].host == "train-1.workers");
  CHECK(c.plan().max_nodes == 1);
}

TEST_CASE("docs and header list the same variables of schedulers") {
  const auto matches = [](const std::string& text, const char* pattern) {
    std::set<std::string> out;
    const std::regex regex(pattern);
    for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) out.insert((*at)[1]);
    return out;
  };
  const auto named =
      matches(tensorplay::tests::source_file("agent/scheduler/variables.hpp"), "= \"([A-Za-z][A-Za-z0-9_]*)\"");
  const auto documented =
      matches(tensorplay::tests::source_file("docs/schedulers.md"), "\n\\| `([A-Za-z][A-Za-z0-9_]*)`");
  CHECK(named == documented);
}
