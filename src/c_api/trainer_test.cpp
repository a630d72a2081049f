// trainer.h as C sees it, against what C++ does.
#include "src/c_api/trainer_testing.hpp"
#include "src/io/safetensors.hpp"

#include <algorithm>
#include <cstring>

namespace {

using namespace arenite;
using namespace arenite::c_api;

TEST_F(CTrainer, SaysWhatItTakesAndGives) {
  create();
  ASSERT_EQ(arenite_trainer_input_count(trainer), 2U);
  arenite_port port{};
  good(arenite_trainer_input(trainer, 0, &port, &message));
  EXPECT_STREQ(port.name, "pixels");
  EXPECT_EQ(port.type, ARENITE_FLOAT32);
  EXPECT_EQ(port.shape[0], 64);
  good(arenite_trainer_prediction(trainer, &port, &message));
  EXPECT_EQ(port.rank, 2);
  EXPECT_EQ(port.shape[1], 10);
  ASSERT_EQ(arenite_trainer_metric_count(trainer), 2U);
  EXPECT_STREQ(arenite_trainer_metric_name(trainer, 0), "loss");
  EXPECT_STREQ(arenite_trainer_metric_name(trainer, 1), "accuracy");
  EXPECT_EQ(arenite_trainer_metric_name(trainer, 2), nullptr);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < arenite_trainer_state_count(trainer); ++i) {
    arenite_state_kind kind{};
    good(arenite_trainer_state(trainer, i, &port, &kind, &message));
    names.emplace_back(port.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"weight", "bias", "weight.velocity", "bias.velocity",
                                             "learning_rate"}));
}

// Events lead through epochs; metrics are those that C++ has, to the bit, and so are the weights.
TEST_F(CTrainer, TrainsAsCxxDoes) {
  set("batch", "50");
  set("epochs", "3");
  set("seed", "7");
  create();
  begin(train, &test);
  int epochs = 0, progress = 0;
  double last = 0, validated = 0;
  for (arenite_event event = advance(4); event.kind != ARENITE_ENDED; event = advance(4)) {
    EXPECT_EQ(event.epochs, 3);
    EXPECT_EQ(event.total, 470);
    EXPECT_EQ(event.epoch, epochs);
    EXPECT_EQ(event.validation != nullptr, event.kind == ARENITE_EPOCH);
    if (event.kind == ARENITE_PROGRESS) {
      EXPECT_EQ(event.done, progress % 3 == 0 ? 200 : 400);
      ++progress;
      continue;
    }
    ++epochs;
    progress = 0;
    last = event.metrics[0];
    validated = event.validation[1];
  }
  EXPECT_EQ(epochs, 3);
  EXPECT_EQ(arenite_trainer_steps(trainer), 30);
  EXPECT_EQ(arenite_trainer_epochs(trainer), 3);

  runtime::Session own;
  const train::Script script = train::read_script(network);
  train::Trainer other(own, script.build,
                       {.batch = 50, .optimizer = script.optimizer, .init = {.seed = 7}});
  Samples samples = data::samples_of(images().train), tested = data::samples_of(images().test);
  for (Samples* const all : {&samples, &tested}) {
    all->columns[0].input = "pixels";
    all->columns[0].shape = {all->count(), 784};
    all->columns[1].input = "label";
  }
  const auto report = other.fit(samples, {.epochs = 3, .seed = 7, .validation = &tested});
  EXPECT_EQ(last, report.train.loss);
  EXPECT_EQ(validated, report.validation->accuracy);
  EXPECT_EQ(sha(trainer), other.weights_sha256());

  std::array<double, 2> found{};
  good(arenite_trainer_evaluate(trainer, test.all.data(), 2, ARENITE_AVERAGED, found.data(), 2,
                                &message));
  EXPECT_EQ(found[1], validated);
  std::vector<float> scores(130 * 10);
  good(arenite_trainer_predict(trainer, test.all.data(), 1, ARENITE_CURRENT, scores.data(),
                               static_cast<std::int64_t>(scores.size() * sizeof(float)), &message));
  const train::Predictions expected = other.predict(tested);
  EXPECT_EQ(std::memcmp(scores.data(), expected.bytes.data(), expected.bytes.size()), 0);
}

// The command's main example has one hash, whoever trains it: C from the script of its file.
TEST_F(CTrainer, EndsInTheHashOfANetworkByName) {
  const std::string path = file("cnn2.st");
  runtime::Session own;
  train::Trainer named(own, nn::model("cnn2").layers, images().shape(), {.batch = 64});
  named.fit(images().train, {.epochs = 1});
  named.save(path);
  set("epochs", "1");
  create(*io::TensorFile(path).said("arenite.script"));
  fit(Columns(images().train, {28, 28, 1}, "images", "labels"));
  EXPECT_EQ(sha(trainer), named.weights_sha256());
  std::filesystem::remove(path);
}

TEST_F(CTrainer, GoesOnFromFilesToTheBit) {
  const std::string path = file("run.st");
  set("epochs", "2");
  create();
  begin(train);
  advance(3);
  good(arenite_trainer_save(trainer, path.c_str(), &message));
  while (advance().kind != ARENITE_ENDED) continue;
  const std::string expected = sha(trainer);
  arenite_trainer_free(trainer);
  trainer = nullptr;

  create();
  char* differs = nullptr;
  good(arenite_trainer_resume(trainer, path.c_str(), &differs, &message));
  EXPECT_STREQ(differs, "");
  arenite_free(differs);
  EXPECT_EQ(arenite_trainer_steps(trainer), 3);
  fit(train);
  EXPECT_EQ(sha(trainer), expected);
  good(arenite_trainer_save(trainer, path.c_str(), &message));
  arenite_trainer_free(trainer);
  trainer = nullptr;

  good(arenite_trainer_open(session, path.c_str(), &trainer, &message));
  std::array<double, 2> found{};
  good(arenite_trainer_evaluate(trainer, test.all.data(), 2, ARENITE_AVERAGED, found.data(), 2,
                                &message));
  EXPECT_EQ(sha(trainer), expected);
  EXPECT_EQ(arenite_trainer_epochs(trainer), 2);
  std::filesystem::remove(path);
}

// Batches that come one by one make the same run.
TEST_F(CTrainer, StepsOnBatchesOfTheCallers) {
  set("shuffle", "off");
  set("epochs", "1");
  create();
  fit(train);
  const std::string expected = sha(trainer);
  arenite_trainer_free(trainer);
  trainer = nullptr;
  create();
  std::array<double, 2> found{};
  for (std::int64_t first = 0; first < 470; first += 64) {
    const std::int64_t count = std::min<std::int64_t>(64, 470 - first);
    data::Split part = images().train;
    part.images = part.images.subspan(static_cast<std::size_t>(first * 784),
                                      static_cast<std::size_t>(count * 784));
    part.labels =
        part.labels.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    part.count = count;
    const Columns batch(part);
    good(arenite_trainer_step(trainer, batch.all.data(), 2, found.data(), 2, &message));
    EXPECT_GT(found[0], 0);
  }
  EXPECT_EQ(sha(trainer), expected);
  EXPECT_EQ(arenite_trainer_steps(trainer), 8);
  EXPECT_EQ(refused(arenite_trainer_step(trainer, train.all.data(), 2, nullptr, 0, &message)),
            "a step on 470 samples; expected at most 64, the batch");
}

TEST_F(CTrainer, HasStatesThatMayBeSetBeforeThereAreSamples) {
  create();
  std::vector<float> bias(10, 3), none(10);
  constexpr std::int64_t bytes = 40;
  EXPECT_EQ(refused(arenite_trainer_get_state(trainer, "bias", none.data(), bytes, &message)),
            "state 'bias' asked for before any data was seen; expected a call of prepare, begin, "
            "fit or evaluate first");
  good(arenite_trainer_set_state(trainer, "bias", bias.data(), bytes, &message));
  good(arenite_trainer_get_state(trainer, "bias", none.data(), bytes, &message));
  EXPECT_EQ(none, bias);
  std::array<double, 2> found{};
  good(arenite_trainer_evaluate(trainer, test.all.data(), 2, ARENITE_AVERAGED, found.data(), 2,
                                &message));
  none.assign(10, 0);
  good(arenite_trainer_get_state(trainer, "bias", none.data(), bytes, &message));
  EXPECT_EQ(none, bias);
  const float rate = -1;
  EXPECT_EQ(refused(arenite_trainer_set_state(trainer, "learning_rate", &rate, 4, &message)),
            "a learning rate of -1.0; expected a number of at least 0 that a float can hold");
  EXPECT_EQ(refused(arenite_trainer_set_state(trainer, "bias", bias.data(), 4, &message)),
            "4 bytes of state 'bias'; expected 40");
  EXPECT_EQ(refused(arenite_trainer_set_state(trainer, "bios", bias.data(), 40, &message)),
            "no state 'bios'; expected one that training keeps (hint: did you mean 'bias'?)");
}

TEST_F(CTrainer, TakesWeightsAloneAndShowsItsMemory) {
  const std::string path = file("weights.st");
  set("epochs", "1");
  create();
  fit(train);
  good(arenite_trainer_save(trainer, path.c_str(), &message));
  const std::string expected = sha(trainer);
  EXPECT_NE(refused(arenite_trainer_take_weights(trainer, path.c_str(), &message))
                .find("weights taken by a run that has begun"),
            std::string::npos);
  arenite_trainer_free(trainer);
  trainer = nullptr;
  create();
  char* table = nullptr;
  good(arenite_trainer_table(trainer, &table, &message));
  EXPECT_EQ(std::string(table).find("memory plan of 'train'"), 0U);
  arenite_free(table);
  char *plan = nullptr, *picture = nullptr;
  arenite_memory memory{};
  good(arenite_trainer_plan(trainer, &plan, &message));
  good(arenite_trainer_picture(trainer, &picture, &message));
  good(arenite_trainer_memory(trainer, &memory, &message));
  EXPECT_NE(std::string(plan).find("\"blocks\""), std::string::npos);
  EXPECT_EQ(std::string(picture).find("<svg"), 0U);
  EXPECT_GT(memory.bytes, memory.arena_bytes);
  EXPECT_GE(memory.arena_bytes, memory.lower_bound);
  arenite_free(plan);
  arenite_free(picture);
  good(arenite_trainer_take_weights(trainer, path.c_str(), &message));
  std::array<double, 2> found{};
  good(arenite_trainer_evaluate(trainer, test.all.data(), 2, ARENITE_AVERAGED, found.data(), 2,
                                &message));
  EXPECT_EQ(sha(trainer), expected);
  EXPECT_EQ(arenite_trainer_steps(trainer), 0);
  std::filesystem::remove(path);
}

TEST_F(CTrainer, RefusesWhatIsWrong) {
  EXPECT_EQ(refused(arenite_trainer_create(session, "result = _;", options, &trainer, &message)),
            "<script>: a script that does not train; expected a train statement");
  EXPECT_EQ(refused(arenite_trainer_options_set(options, "cudnn", "off", &message)),
            "the option 'cudnn'; expected one of accumulate, at-once, batch, compute, early-stop, "
            "epochs, lanes, seed, shards, shuffle");
  EXPECT_EQ(refused(arenite_trainer_options_set(options, "epochs", "-1", &message)),
            "epochs '-1'; expected a whole number of 0 to 1000000");
  EXPECT_EQ(trainer, nullptr);
  create();
  std::array<double, 2> found{};
  EXPECT_EQ(refused(arenite_trainer_evaluate(trainer, test.all.data(), 1, ARENITE_AVERAGED,
                                             found.data(), 2, &message)),
            "samples without a column 'label'; expected one for each input that is read");
  EXPECT_EQ(refused(arenite_trainer_evaluate(trainer, test.all.data(), 2, ARENITE_AVERAGED,
                                             found.data(), 1, &message)),
            "room for 1 metrics; expected 2");
  Columns wrong(images().test);
  wrong.all[0].rank = 9;
  EXPECT_EQ(refused(arenite_trainer_evaluate(trainer, wrong.all.data(), 2, ARENITE_AVERAGED,
                                             found.data(), 2, &message)),
            "column 'pixels' of type 4 and rank 9; expected one of arenite_type, and a rank of 0 "
            "to 8");
  EXPECT_EQ(refused(arenite_trainer_predict(trainer, test.all.data(), 2, ARENITE_CURRENT, nullptr,
                                            5200, &message)),
            "null for the predictions' place; expected a pointer");
  arenite_event event{};
  EXPECT_EQ(refused(arenite_trainer_advance(trainer, -1, 0, &event, &message)).substr(0, 11),
            "an advance ");
  EXPECT_EQ(refused(arenite_trainer_save(nullptr, "x", &message)),
            "null for the trainer; expected a pointer");
  good(arenite_trainer_advance(trainer, 0, 0, &event, &message));
  EXPECT_EQ(event.kind, ARENITE_ENDED);
  EXPECT_EQ(event.metrics, nullptr);
}

}  // namespace
