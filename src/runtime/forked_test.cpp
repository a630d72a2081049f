#include "src/runtime/forked.hpp"

#include <arenite/arenite.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>

#include "src/base/testing.hpp"

namespace arenite::runtime {
namespace {

using arenite::testing::error_of;

/// The status of a child that does this and then ends as programs do; one that hangs is killed.
int status_of(const std::function<int()>& child) {
  const pid_t id = ::fork();
  if (id == 0) {
    ::alarm(20);
    ::exit(child());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(id, &status, 0), id);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Forked, AChildIsRefusedWhatOnlyItsParentCanDo) {
  const data::ImageData data = data::synthetic({.seed = 1, .train = 64, .test = 20});
  std::optional<Session> session(std::in_place, SessionOptions{.workers = 2});
  std::optional<train::Trainer> trainer(std::in_place, *session, nn::model("mlp").layers,
                                        data.shape(), train::TrainerOptions{.batch = 16});
  trainer->fit(data.train, {.epochs = 1});
  const std::string words = "a session of the process that forked this one; expected work in the";
  const auto is_refused = [&](const std::function<void()>& action) {
    return error_of(action).starts_with(words) ? 0 : 1;
  };
  EXPECT_EQ(status_of([&] { return is_refused([&] { trainer->fit(data.train); }); }), 0);
  EXPECT_EQ(status_of([&] { return is_refused([&] { trainer->evaluate(data.test); }); }), 0);
  EXPECT_EQ(status_of([&] { return is_refused([] { const Session second; }); }), 0);
  EXPECT_EQ(status_of([&] {
              trainer.reset();
              session.reset();
              return is_forked() ? 0 : 1;
            }),
            0);
  EXPECT_FALSE(is_forked());
  trainer->fit(data.train, {.epochs = 1});  // the parent goes on

  trainer.reset();
  session.reset();
  EXPECT_EQ(status_of([&] {  // no session ran: the child begins its own
              Session own({.workers = 1});
              train::Trainer mine(own, nn::model("mlp").layers, data.shape(), {.batch = 16});
              return mine.fit(data.train, {.epochs = 1}).train.samples == 64 ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace arenite::runtime
