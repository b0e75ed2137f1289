#include "agent/scheduler/facts.hpp"

#include "agent/usage_error.hpp"
#include "tests/agent/fake_machine.hpp"
#include "tests/agent/scheduler/recorded.hpp"
#include "tests/support/catch.hpp"

using namespace tensorplay::agent;
using Words = std::vector<std::string>;

namespace {

struct Case {
  FakeMachine machine;
  Words environment;

  explicit Case(Words environment_) : environment(std::move(environment_)) {}

  SchedulerFacts facts(const std::string& choice = "auto") const {
    const EnvironmentView view(environment);
    return find_scheduler_facts({view, machine}, choice);
  }
  std::string complaint(const std::string& choice = "auto") const {
    try {
      facts(choice);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "(none)";
  }
};

}  // namespace

TEST_CASE("a task of srun is a node of its step") {
  const auto facts = Case(recorded::slurm_step("n[1-3]", 3, 2)).facts();
  CHECK(facts.name == "slurm");
  CHECK(facts.nodes == 3);
  CHECK(facts.node_index == 2);
  CHECK(facts.hosts == Words{"n1", "n2", "n3"});
  CHECK(facts.run_id == "slurm-42.0");
  CHECK(facts.conclusion == "SLURM job 42, step 0: node 2 of 3 (n1 n2 n3)");
  CHECK(facts.hint.empty());
}

TEST_CASE("a step on some of the job's nodes is a world of those") {
  const auto facts = Case(recorded::slurm_step("n[2-3]", 2, 0)).facts();
  CHECK(facts.nodes == 2);
  CHECK(facts.hosts == Words{"n2", "n3"});
}

TEST_CASE("all nodes of a step derive the same ports, and another step or restart others") {
  auto again = recorded::slurm_step("n[1-3]", 3, 1);
  again.push_back("SLURM_RESTART_COUNT=1");
  const auto a = Case(recorded::slurm_step("n[1-3]", 3, 0)).facts(),
             b = Case(recorded::slurm_step("n[1-3]", 3, 1)).facts(), c = Case(again).facts();
  CHECK(a.ports == b.ports);
  CHECK(a.ports.size() == 3);
  CHECK(c.run_id == "slurm-42.0-r1");
  CHECK(c.ports != a.ports);
  CHECK(c.conclusion == "SLURM job 42, step 0: node 1 of 3 (n1 n2 n3), restart 1");
  for (const std::uint16_t port : a.ports) CHECK((port >= 20'000 && port < 32'000));
}

TEST_CASE("a batch script without srun is one node, with a hint") {
  const auto facts = Case(recorded::slurm_batch_script()).facts();
  CHECK_FALSE(facts.nodes);
  CHECK(facts.hosts.empty());
  CHECK(facts.conclusion == "SLURM job 42, outside its tasks: one node");
  CHECK(
      facts.hint ==
      "SLURM job 42 has 3 nodes but tprun was started on one, which it takes for all; to use them: srun tprun ...; if "
      "one is meant: --nnodes=1");
  CHECK(Case(recorded::slurm_job("n1", 1)).facts().hint.empty());
}

TEST_CASE("step variables that sbatch or salloc passed on from the step they were called in are no evidence") {
  // As seen: the job is a new one on n1, the step is the old job's.
  auto stale = recorded::slurm_step("n[1-3]", 3, 0);
  for (std::string& entry : stale) {
    if (entry.starts_with("SLURM_JOB_NODELIST=")) entry = "SLURM_JOB_NODELIST=n1";
  }
  CHECK_FALSE(Case(stale).facts().nodes);
  Case same_nodes(recorded::slurm_step("n[1-3]", 3, 0));
  same_nodes.machine.above = {"bash", "slurmstepd: [42.batch]", "slurmd"};
  CHECK_FALSE(same_nodes.facts().nodes);
  same_nodes.machine.above = {"bash", "salloc -N3", "slurmstepd: [41.0]"};
  CHECK_FALSE(same_nodes.facts().nodes);
  same_nodes.machine.above = {"bash train.sh", "slurmstepd: [42.0]  "};
  CHECK(same_nodes.facts().nodes == 3);
}

TEST_CASE("a heterogeneous step is one world over its components") {
  Case c(recorded::slurm_step("n[1-3]", 3, 2));
  c.environment.insert(c.environment.end(), {"SLURM_HET_SIZE=2", "SLURM_JOB_ID_HET_GROUP_0=42",
                                             "SLURM_JOB_ID_HET_GROUP_1=43", "SLURM_JOB_NODELIST_HET_GROUP_0=n1"});
  c.machine.above = {"slurmstepd: [43.0]"};  // The second component's own id.
  CHECK(c.facts().nodes == 3);
  CHECK(c.facts().run_id == "slurm-42.0");
}

TEST_CASE("a shell of salloc or a batch step is not a step of srun") {
  auto env = recorded::slurm_step("n1", 1, 0);
  for (std::string& entry : env) {
    if (entry.starts_with("SLURM_STEP_ID=")) entry = "SLURM_STEP_ID=4294967290";
  }
  CHECK_FALSE(Case(env).facts().nodes);
}

TEST_CASE("several tasks on a node are refused in one sentence, said once") {
  CHECK(
      Case(recorded::slurm_two_tasks_on_a_node(0)).complaint() ==
      "SLURM job 42, step 0: tprun was started 2 times on one node, but one tprun starts all of a node's workers; give "
      "srun --ntasks-per-node=1, and tprun --nproc-per-node=N");
  CHECK_THROWS_AS(Case(recorded::slurm_two_tasks_on_a_node(3)).facts(), RepeatedUsageError);
  CHECK(Case(recorded::open_mpi(2, 0, 2)).complaint() ==
        "Open MPI job 749076481: tprun was started 2 times on one node, but one tprun starts all of a node's workers; "
        "give mpirun -npernode 1, and tprun --nproc-per-node=N");
  CHECK_THROWS_AS(Case(recorded::hydra(4, 1, 2)).facts(), RepeatedUsageError);
}

TEST_CASE("GPUs that SLURM gives to the step are the workers of a node") {
  auto env = recorded::slurm_step("n[1-3]", 3, 0);
  CHECK_FALSE(Case(env).facts().workers_here);
  env.push_back("SLURM_GPUS_ON_NODE=4");
  CHECK(Case(env).facts().workers_here == 4);
}

TEST_CASE("MASTER_ADDR, WORLD_SIZE and RANK alone, or an index of Kubernetes, are no evidence") {
  const Case c({"MASTER_ADDR=job-master-0", "MASTER_PORT=23456", "WORLD_SIZE=4", "RANK=2", "JOB_COMPLETION_INDEX=2",
                "JOB_ID=3", "NODE_RANK=2", "PMI_RANK=1", "PMI_SIZE=4", "KUBERNETES_SERVICE_HOST=10.0.0.1"});
  CHECK(c.facts().name.empty());
  CHECK(c.facts().conclusion.empty());
}

TEST_CASE("a tprun inside a worker of another one is alone") {
  auto env = recorded::slurm_step("n[1-3]", 3, 0);
  env.push_back("TPRUN_WORKER=1.0.0");
  CHECK(Case(env).facts().name.empty());
  CHECK(Case(env).facts("slurm").nodes == 3);
  CHECK(Case(env).facts("none").name.empty());
}

TEST_CASE("mpirun tells size and rank, the batch scheduler around it the hosts") {
  auto env = recorded::open_mpi(3, 1, 1);
  const auto job = recorded::slurm_batch_script();
  env.insert(env.end(), job.begin(), job.end());
  const auto facts = Case(env).facts();
  CHECK(facts.name == "openmpi");
  CHECK(facts.nodes == 3);
  CHECK(facts.node_index == 1);
  CHECK(facts.hosts == Words{"n1", "n2", "n3"});
  CHECK(facts.run_id == "openmpi-749076481");
  CHECK(facts.conclusion == "Open MPI job 749076481 in SLURM job 42: node 1 of 3 (n1 n2 n3)");
}

TEST_CASE("without a batch scheduler nodes of mpirun meet at MASTER_ADDR, else on mpirun's own host") {
  auto env = recorded::open_mpi(2, 1, 1);
  CHECK(Case(env).facts().hosts == Words{"192.0.2.2"});
  env.push_back("MASTER_ADDR=n1");
  CHECK(Case(env).facts().hosts == Words{"n1"});
  CHECK(Case(recorded::hydra(2, 1, 1)).complaint() ==
        "mpiexec (Hydra): its launcher tells neither the hosts nor a name of the job; give --nnodes=2, "
        "--rdzv-backend=c10d, --rdzv-endpoint=HOST:PORT and --rdzv-id");
  CHECK(Case(recorded::hydra(1, 0, 1)).facts().nodes == 1);
  CHECK(Case(recorded::hydra(1, 0, 1)).facts().run_id.empty());
}

TEST_CASE("Hydra inside a job takes its hosts and its name; srun that speaks PMI is srun") {
  auto env = recorded::hydra(2, 1, 1);
  const auto job = recorded::lsf();
  env.insert(env.end(), job.begin(), job.end());
  CHECK(Case(env).facts().conclusion == "mpiexec (Hydra) in LSF job 77: node 1 of 2 (h1 h2)");
  CHECK(Case(env).facts().run_id == "lsf-77");
  auto srun = recorded::slurm_step("n[1-3]", 3, 2);
  srun.insert(srun.end(), {"PMI_RANK=2", "PMI_SIZE=3", "PMI_LOCAL_SIZE=1"});
  CHECK(Case(srun).facts().name == "slurm");
}

TEST_CASE("PBS: the job script is one node, what pbsdsh starts is one of many") {
  Case script(recorded::pbs(0, "00000001"));
  script.machine.add_file("/var/spool/pbs/aux/123.server", "n1.x\nn1.x\nn2.x\nn2.x\n");
  CHECK_FALSE(script.facts().nodes);
  CHECK(script.facts().hint ==
        "PBS job 123.server has 2 nodes but tprun was started on one, which it takes for all; to use them: tprun "
        "--hostfile=\"$PBS_NODEFILE\" ...; if one is meant: --nnodes=1");
  Case task(recorded::pbs(1, "00000001"));
  task.machine.files = script.machine.files;
  task.machine.host = "n2";
  CHECK(task.facts().conclusion == "PBS job 123.server: node 1 of 2 (n1.x n2.x)");
  CHECK(task.facts().run_id == "pbs-123.server");
  Case first(recorded::pbs(0, "00000002"));
  first.machine.files = script.machine.files;
  first.machine.host = "n1";
  CHECK(first.facts().node_index == 0);
  CHECK(first.facts().nodes == 2);
  CHECK(Case(recorded::pbs(1, "1")).complaint().starts_with("PBS job 123.server: the hosts are not known here"));
  script.machine.host = "n1";
  CHECK(script.facts("pbs").nodes == 2);
}

TEST_CASE("LSF: the job script is one node, a task of blaunch is found by its host's name") {
  Case c(recorded::lsf());
  CHECK(c.facts().hint.starts_with("LSF job 77 has 2 nodes"));
  c.environment.push_back("LSF_PM_TASKID=2");
  c.machine.host = "h2.domain";
  CHECK(c.facts().conclusion == "LSF job 77: node 1 of 2 (h1 h2)");
  c.machine.host = "h9";
  CHECK(c.complaint() == "LSF job 77: this host (h9) is not in LSB_MCPU_HOSTS; give --nnodes and --rdzv-endpoint");
  c.environment = {"LSB_JOBID=77",         "LSB_JOBINDEX=3",       "LSB_MCPU_HOSTS=batch 1 h1 42 h2 42",
                   "JSM_NAMESPACE_SIZE=2", "JSM_NAMESPACE_RANK=1", "JSM_NAMESPACE_LOCAL_SIZE=1"};
  CHECK(c.facts().conclusion == "LSF job 77[3]: node 1 of 2 (h1 h2)");
}

TEST_CASE("Grid Engine: one node, unless --scheduler=sge settles that every host runs one") {
  Case c(recorded::grid_engine());
  c.machine.add_file("/spool/9.1/pe_hostfile", "g1.x 2 all.q@g1 UNDEFINED\ng2.x 2 all.q@g2 UNDEFINED\n");
  c.machine.host = "g2";
  CHECK_FALSE(c.facts().nodes);
  CHECK(c.facts().hint.find("qrsh -inherit") != std::string::npos);
  CHECK(c.facts("sge").conclusion == "Grid Engine job 9: node 1 of 2 (g1.x g2.x)");
}

TEST_CASE("Kubernetes is believed when it is named: an indexed job, a JobSet, the training operator") {
  Case job({"JOB_COMPLETION_INDEX=2"});
  job.machine.host = "train-2.workers.ml.svc.cluster.local";
  CHECK(job.facts("kubernetes").node_index == 2);
  CHECK_FALSE(job.facts("kubernetes").nodes);
  CHECK(job.facts("kubernetes").run_id == "kubernetes-train");
  CHECK(job.facts("kubernetes").hosts.front() == "train-0.workers.ml.svc.cluster.local");
  Case set({"JOB_COMPLETION_INDEX=1"});
  set.machine.host = "llm-workers-0-1.llm";
  CHECK(set.facts("kubernetes").hosts.front() == "llm-workers-0-0.llm");
  set.machine.host = "renamed";
  CHECK(set.complaint("kubernetes").starts_with("--scheduler=kubernetes: this pod is called renamed and has index 1"));
  const auto facts = Case(recorded::training_operator()).facts("kubernetes");
  CHECK(facts.nodes == 2);
  CHECK(facts.node_index == 1);
  CHECK(facts.hosts == Words{"job-master-0"});
}

TEST_CASE("a scheduler that is named and not there is refused") {
  CHECK(Case({}).complaint("slurm") ==
        "--scheduler=slurm: it did not start this: SLURM_JOB_ID is not set here; drop the option, or give "
        "--scheduler=none");
  CHECK(Case({}).facts("none").name.empty());
}

TEST_CASE("a long list of hosts is cut short for people") {
  auto env = recorded::slurm_step("n[1-100]", 100, 7);
  for (std::string& entry : env) {
    if (entry.starts_with("SLURM_JOB_NODELIST=")) entry = "SLURM_JOB_NODELIST=n[1-100]";
  }
  CHECK(Case(env).facts().conclusion == "SLURM job 42, step 0: node 7 of 100 (n1 n2 n3 n4 ... n100)");
}
