#include "agent/program_lookup.hpp"

#include "tests/agent/fake_machine.hpp"
#include "tests/support/catch.hpp"

#include <cerrno>

using namespace tensorplay::agent;
using Words = std::vector<std::string>;

namespace {

struct Case {
  FakeMachine machine;
  Words environment{"PATH=/usr/local/bin:/usr/bin"};
  ProgramRequest request;

  ProgramPlan find(const Words& words) {
    request.words = words;
    return find_program(request, EnvironmentView(environment), machine);
  }
};

}  // namespace

TEST_CASE("a path is run itself when it is executable, and by Python when it is not or ends in .py") {
  Case c;
  c.machine.add_executable("./train");
  c.machine.add_executable("./train.py");
  c.machine.add_file("dir/script");
  CHECK(c.find({"./train", "a"}).argv == Words{"./train", "a"});
  CHECK(c.find({"./train.py", "a"}).argv == Words{"/usr/bin/python3", "-u", "./train.py", "a"});
  const ProgramPlan plan = c.find({"dir/script", "a"});
  CHECK(plan.argv == Words{"/usr/bin/python3", "-u", "dir/script", "a"});
  CHECK(plan.first_argument == 3);
  CHECK(plan.reason == "a file without execute permission: run by the python in PATH");
}

TEST_CASE("a bare name is an executable of this folder, then of PATH, and a folder of that name is no obstacle") {
  Case c;
  c.machine.add_executable("/usr/bin/train");
  c.machine.folders.insert("train");
  CHECK(c.find({"train"}).argv == Words{"/usr/bin/train"});
  c.machine.folders.clear();
  c.machine.add_executable("train");
  CHECK(c.find({"train"}).argv == Words{"./train"});
  c.machine.add_file("job");
  CHECK(c.find({"job"}).argv == Words{"/usr/bin/python3", "-u", "job"});
  c.machine.add_file("job.py");
  CHECK(c.find({"job.py"}).argv == Words{"/usr/bin/python3", "-u", "job.py"});
}

TEST_CASE("--no-python looks in PATH first and never calls Python") {
  Case c;
  c.request.no_python = true;
  c.machine.add_executable("train");
  CHECK(c.find({"train"}).argv == Words{"./train"});
  c.machine.add_executable("/usr/local/bin/train");
  CHECK(c.find({"train"}).argv == Words{"/usr/local/bin/train"});
  c.machine.add_executable("./t.py");
  CHECK(c.find({"./t.py"}).argv == Words{"./t.py"});
  c.machine.add_file("./plain.py");
  CHECK(c.find({"./plain.py"}).startup_errno == EACCES);
}

TEST_CASE("-m and --run-path go to Python whatever the file is") {
  Case c;
  c.request.is_module = true;
  CHECK(c.find({"pkg.mod", "x"}).argv == Words{"/usr/bin/python3", "-u", "-m", "pkg.mod", "x"});
  c.request.run_path = true;
  c.request.no_python = true;
  c.machine.add_executable("tool");
  CHECK(c.find({"tool"}).argv == Words{"/usr/bin/python3", "-u", "tool"});
}

TEST_CASE("what cannot be run is known beforehand, with the reason") {
  Case c;
  c.machine.folders.insert("./dir");
  CHECK(c.find({"./nope"}).startup_errno == ENOENT);
  CHECK(c.find({"nope"}).startup_errno == ENOENT);
  CHECK(c.find({"nope.py"}).startup_errno == ENOENT);
  CHECK(c.find({""}).startup_errno == ENOENT);
  CHECK(c.find({"./dir"}).startup_errno == EACCES);
  c.machine.add_file("./dir/__main__.py");
  CHECK(c.find({"./dir"}).argv == Words{"/usr/bin/python3", "-u", "./dir"});
}

TEST_CASE("Python is PYTHON_EXEC's, else the one beside tprun, else the environment's, else PATH's") {
  Case c;
  c.machine.add_file("t.py");
  const auto python = [&] { return c.find({"t.py"}).argv.front(); };
  CHECK(python() == "/usr/bin/python3");
  c.environment.push_back("CONDA_PREFIX=/conda");
  c.machine.add_executable("/conda/bin/python");
  CHECK(python() == "/conda/bin/python");
  c.environment.push_back("VIRTUAL_ENV=/venv");
  c.machine.add_executable("/venv/bin/python");
  CHECK(python() == "/venv/bin/python");
  c.machine.own = {"/other/bin"};
  c.machine.add_executable("/other/bin/python3");
  CHECK(python() == "/other/bin/python3");
  c.environment.push_back("PYTHON_EXEC=/mine/python");
  CHECK(c.find({"t.py"}).startup_errno == ENOENT);
  c.machine.add_executable("/mine/python");
  CHECK(python() == "/mine/python");
  c.environment.back() = "PYTHON_EXEC=python3";
  CHECK(python() == "/usr/bin/python3");
}

TEST_CASE("a tprun in a system folder does not hide an activated environment") {
  Case c;
  c.machine.add_file("t.py");
  c.machine.own = {"/usr/bin"};
  c.machine.add_executable("/venv/bin/python");
  c.environment.push_back("VIRTUAL_ENV=/venv");
  CHECK(c.find({"t.py"}).argv.front() == "/venv/bin/python");
}
