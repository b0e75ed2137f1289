#include "agent/worker_environment.hpp"

#include "tests/support/catch.hpp"

#include <algorithm>

using namespace tensorplay::agent;
using tensorplay::rendezvous::StartOrder;
using Words = std::vector<std::string>;

namespace {

LaunchPlan four_workers() {
  LaunchPlan plan;
  plan.nproc_per_node = 4;
  plan.role = "trainer";
  plan.max_restarts = 3;
  plan.rdzv.run_id = "job7";
  plan.signals_to_handle = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  return plan;
}

StartOrder second_node() {
  StartOrder order;
  order.restart_count = 1;
  order.world_size = 8;
  order.group_rank = 1;
  order.group_world_size = 2;
  order.first_rank = 4;
  order.first_role_rank = 2;
  order.role_world_size = 6;
  order.master_addr = "10.0.0.1";
  order.master_port = 4711;
  return order;
}

}  // namespace

TEST_CASE("a worker is given every variable torchrun gives, and keeps the rest of the environment") {
  const Words base = {"PATH=/bin",
                      "RANK=77",
                      "TORCHELASTIC_ERROR_FILE=/outer/error.json",
                      "EMPTY=",
                      "no equals sign",
                      "TPRUN_WORKER=outer",
                      "TPRUN_RDZV_TOKEN=secret"};
  Words all = worker_environment(four_workers(), second_node(), 3, EnvironmentView(base), "/logs/3/error.json");
  std::sort(all.begin(), all.end());
  CHECK(all == Words{"EMPTY=",
                     "GROUP_RANK=1",
                     "GROUP_WORLD_SIZE=2",
                     "LOCAL_RANK=3",
                     "LOCAL_WORLD_SIZE=4",
                     "MASTER_ADDR=10.0.0.1",
                     "MASTER_PORT=4711",
                     "OMP_NUM_THREADS=1",
                     "PATH=/bin",
                     "RANK=7",
                     "ROLE_NAME=trainer",
                     "ROLE_RANK=5",
                     "ROLE_WORLD_SIZE=6",
                     "TORCHELASTIC_ERROR_FILE=/logs/3/error.json",
                     "TORCHELASTIC_MAX_RESTARTS=3",
                     "TORCHELASTIC_RESTART_COUNT=1",
                     "TORCHELASTIC_RUN_ID=job7",
                     "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT",
                     "TORCHELASTIC_USE_AGENT_STORE=True",
                     "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
                     "WORLD_SIZE=8",
                     "no equals sign"});
}

TEST_CASE("OMP_NUM_THREADS is the user's, else 1 for several workers, else untouched") {
  LaunchPlan plan = four_workers();
  const StartOrder order;
  CHECK(worker_additions(plan, &order, 0, EnvironmentView(Words{"OMP_NUM_THREADS=7"}), "").at("OMP_NUM_THREADS") ==
        "7");
  CHECK(worker_additions(plan, &order, 0, EnvironmentView(Words{}), "").at("OMP_NUM_THREADS") == "1");
  plan.nproc_per_node = 1;
  CHECK_FALSE(worker_additions(plan, &order, 0, EnvironmentView(Words{}), "").contains("OMP_NUM_THREADS"));
}

TEST_CASE("with a virtual local rank each worker sees one device and local rank 0") {
  LaunchPlan plan = four_workers();
  plan.virtual_local_rank = true;
  const auto of = [&](const Words& base, int rank) {
    auto all = worker_additions(plan, nullptr, rank, EnvironmentView(base), std::nullopt);
    const auto hip = all.find("HIP_VISIBLE_DEVICES");
    return all.at("LOCAL_RANK") + " " + all.at("CUDA_VISIBLE_DEVICES") + (hip == all.end() ? "" : " " + hip->second);
  };
  CHECK(of({}, 2) == "0 2");
  CHECK(of({"CUDA_VISIBLE_DEVICES=7, 5 ,3,1"}, 1) == "0 5");
  CHECK(of({"CUDA_VISIBLE_DEVICES=MIG-a,MIG-b,MIG-c,MIG-d"}, 3) == "0 MIG-d");
  CHECK(of({"CUDA_VISIBLE_DEVICES=9,9,9,9", "HIP_VISIBLE_DEVICES=4,5,6,7"}, 1) == "0 5 5");
}

TEST_CASE("a store of the workers' own is announced, and a user's error handling is kept") {
  LaunchPlan plan = four_workers();
  plan.shares_agent_store = false;
  const auto all = worker_additions(plan, nullptr, 0, EnvironmentView(Words{"TORCH_NCCL_ASYNC_ERROR_HANDLING=3"}), "");
  CHECK(all.at("TORCHELASTIC_USE_AGENT_STORE") == "False");
  CHECK(all.at("TORCH_NCCL_ASYNC_ERROR_HANDLING") == "3");
  CHECK(all.at("TORCHELASTIC_ERROR_FILE").empty());
}

TEST_CASE("only the local rank is replaced in the program's words") {
  CHECK(substitute_local_rank("r${local_rank}.$local_rank", 12) == "r12.12");
  CHECK(substitute_local_rank("$local_rank_x ${local_rank_x} $local_ranks", 1) ==
        "$local_rank_x ${local_rank_x} $local_ranks");
  CHECK(substitute_local_rank("$HOME ${HOME} $ ${ $( ${local_rank", 1) == "$HOME ${HOME} $ ${ $( ${local_rank");
  CHECK(substitute_local_rank("$${local_rank} $$local_rank", 3) == "${local_rank} $local_rank");
  CHECK(substitute_local_rank("kill $$ $$$local_rank $$$$local_rank $$x $", 3) == "kill $$ $$3 $$$local_rank $$x $");
}

TEST_CASE(
    "the legacy front puts the local rank in front of the program's arguments, the file itself is never touched") {
  LaunchPlan plan;
  plan.program.argv = {"/opt/$local_rank/python", "-u", "t.py", "a", "$local_rank"};
  plan.program.first_argument = 3;
  CHECK(worker_argv(plan, 2) == Words{"/opt/$local_rank/python", "-u", "t.py", "a", "2"});
  plan.program.appends_local_rank = true;
  CHECK(worker_argv(plan, 2) == Words{"/opt/$local_rank/python", "-u", "t.py", "--local-rank=2", "a", "2"});
  plan.program.argv.resize(3);
  CHECK(worker_argv(plan, 0) == Words{"/opt/$local_rank/python", "-u", "t.py", "--local-rank=0"});
}
