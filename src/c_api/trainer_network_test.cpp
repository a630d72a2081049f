// Trainers of networks by size, and what they take from each other and give back.
#include "src/c_api/trainer_testing.hpp"

#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>

namespace {

using namespace arenite;
using namespace arenite::c_api;

/// Scripts by the samples of a step, and how often somebody has asked for them.
struct Scripts {
  std::function<std::string(std::int64_t)> text_for;
  std::string text = {};
  std::map<std::int64_t, int> asked = {};

  static const char* of(void* context, std::int64_t samples) {
    auto& self = *static_cast<Scripts*>(context);
    ++self.asked[samples];
    self.text = self.text_for(samples);
    return self.text.empty() ? nullptr : self.text.c_str();
  }
};

std::string with(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string network_for(std::int64_t samples) {
  return with(network, "N<=100", "N<=" + std::to_string(samples));
}

// A text for each size is the same network as one for all; where it is not, each size has its own.
TEST_F(CTrainer, AsksForNetworksBySize) {
  create();
  fit(train);
  const std::string expected = sha(trainer);
  const std::string path = file("sized.st");
  for (const bool is_open : {true, false}) {
    arenite_trainer_free(trainer);
    trainer = nullptr;
    Scripts scripts{[&](std::int64_t samples) {
      const std::string number = std::to_string(samples);
      // A network that computes with the number, and says so in no other way.
      return is_open ? network_for(samples)
                     : with(network_for(samples), "divisor=N", "divisor=" + number);
    }};
    good(arenite_trainer_create_sized(session, Scripts::of, &scripts, options, &trainer, &message));
    fit(train);
    EXPECT_EQ(sha(trainer), expected);
    EXPECT_TRUE(scripts.asked.contains(64));
    EXPECT_TRUE(scripts.asked.contains(470 % 64));
    good(arenite_trainer_save_with(trainer, path.c_str(), "of", "sizes", &message));
    char* said = nullptr;
    good(arenite_saved_text(path.c_str(), "of", &said, &message));
    EXPECT_STREQ(said, "sizes");
    arenite_free(said);
    // Only one text for all is a network that others can build.
    arenite_trainer* opened = nullptr;
    if (is_open) {
      good(arenite_trainer_open(session, path.c_str(), &opened, &message));
      EXPECT_EQ(sha(opened), expected);
      arenite_trainer_free(opened);
    } else {
      EXPECT_NE(refused(arenite_trainer_open(session, path.c_str(), &opened, &message))
                    .find("a run without its network"),
                std::string::npos);
    }
  }
  std::filesystem::remove(path);

  arenite_trainer* none = nullptr;
  Scripts scripts{[](std::int64_t samples) { return samples == 64 ? network_for(64) : ""; }};
  EXPECT_EQ(
      refused(arenite_trainer_create_sized(session, nullptr, nullptr, options, &none, &message)),
      "null for the scripts' function; expected a function");
  good(arenite_trainer_create_sized(session, Scripts::of, &scripts, options, &none, &message));
  EXPECT_EQ(
      refused(arenite_trainer_begin(none, train.all.data(), 2, nullptr, 0, options, &message)),
      "no script for 22 samples; expected a text");
  scripts.text_for = [](std::int64_t) { return std::string("result = _;"); };
  EXPECT_EQ(
      refused(arenite_trainer_begin(none, train.all.data(), 2, nullptr, 0, options, &message)),
      "<script for 64>: a script that does not train; expected a train statement");
  scripts.text_for = network_for;
  good(arenite_trainer_begin(none, train.all.data(), 2, nullptr, 0, options, &message));
  arenite_trainer_free(none);
}

// A parameter is frozen on the way: what is kept goes along, and what was borrowed is given back.
TEST_F(CTrainer, TakesOverFromAnother) {
  create();
  fit(train);
  good(arenite_trainer_release(trainer, train.all.data(), 2, &message));
  const std::string before = sha(trainer);
  arenite_trainer* frozen = nullptr;
  const std::string script = with(network, "[10])", "[10], frozen)");
  good(arenite_trainer_create(session, script.c_str(), options, &frozen, &message));
  EXPECT_EQ(refused(arenite_trainer_take_over(trainer, trainer, &message)),
            "a trainer that takes over from itself; expected two of them");
  good(arenite_trainer_take_over(frozen, trainer, &message));
  EXPECT_EQ(arenite_trainer_epochs(frozen), 10);
  EXPECT_EQ(arenite_trainer_steps(frozen), arenite_trainer_steps(trainer));
  std::array<float, 10> bias{}, now{};
  good(arenite_trainer_get_state(trainer, "bias", bias.data(), sizeof bias, &message));
  std::swap(trainer, frozen);
  EXPECT_EQ(sha(trainer), before);
  fit(train);
  EXPECT_NE(sha(trainer), before);
  good(arenite_trainer_get_state(trainer, "bias", now.data(), sizeof now, &message));
  EXPECT_EQ(now, bias);
  float rate = 0;
  good(arenite_trainer_learning_rate(trainer, &rate, &message));
  EXPECT_EQ(rate, 0.05f);
  good(arenite_trainer_set_learning_rate(trainer, 0.5f, &message));
  good(arenite_trainer_learning_rate(trainer, &rate, &message));
  EXPECT_EQ(rate, 0.5f);
  EXPECT_NE(refused(arenite_trainer_set_learning_rate(trainer, -1, &message)).find("-1"),
            std::string::npos);
  char* text = nullptr;
  good(arenite_trainer_untrained(trainer, &text, &message));
  EXPECT_STREQ(text, "");
  arenite_free(text);
  arenite_trainer_free(frozen);
}

}  // namespace
