#include "src/data/garments.hpp"

#include <algorithm>
#include <array>

namespace arenite::data {
namespace {

constexpr int middle = 128;

// Both halves from the right one: `x` counts from the middle line, top to bottom.
Polygon mirrored(Polygon half) {
  Polygon outline = half;
  for (Point& p : outline) p.x = middle + p.x;
  std::reverse(half.begin(), half.end());
  for (const Point& p : half) outline.push_back({middle - p.x, p.y});
  return outline;
}

Polygon box(int left, int top, int right, int bottom) {
  return {{left, top}, {right, top}, {right, bottom}, {left, bottom}};
}

// A band of constant width along a polyline.
Polygon band(const Polygon& line, int dx, int dy) {
  Polygon outline = line;
  for (auto p = line.rbegin(); p != line.rend(); ++p) outline.push_back({p->x + dx, p->y + dy});
  return outline;
}

struct Torso {
  int neck, shoulder, top, armpit, waist, hem_width, hem;
};

Torso roll_torso(Dice& dice) {
  return {.neck = dice.roll(14, 26),
          .shoulder = dice.roll(44, 56),
          .top = dice.roll(28, 40),
          .armpit = dice.roll(82, 100),
          .waist = dice.roll(40, 52),
          .hem_width = dice.roll(42, 58),
          .hem = dice.roll(196, 222)};
}

// `length` down from the shoulder, `spread` off the body. Dice are rolled in braces only, here as
// elsewhere: there the order is the written one, among arguments every compiler has its own.
struct Sleeve {
  int length, spread, width;
};

Polygon sleeved(const Torso& t, const Sleeve& s) {
  return mirrored({{t.neck, t.top},
                   {t.shoulder, t.top + 8},
                   {t.shoulder + s.spread, t.top + s.length},
                   {t.shoulder + s.spread - s.width, t.top + s.length + 8},
                   {t.waist, t.armpit},
                   {t.waist - 2, (t.armpit + t.hem) / 2},
                   {t.hem_width, t.hem}});
}

Part neckline(const Torso& t, int depth) {
  return {mirrored({{t.neck - 4, t.top - 2}, {(t.neck - 4) / 2, t.top + depth}}), Finish::hole};
}

std::vector<Part> t_shirt(Dice& dice) {
  const Torso t = roll_torso(dice);
  return {{sleeved(t, {dice.roll(44, 72), dice.roll(22, 42), dice.roll(14, 22)})},
          neckline(t, dice.roll(6, 16))};
}

std::vector<Part> trousers(Dice& dice) {
  const int waist = dice.roll(30, 42), hip = dice.roll(40, 54), hem = dice.roll(210, 240);
  const int ankle = dice.roll(34, 60), leg = dice.roll(18, 30), crotch = dice.roll(88, 120);
  std::vector<Part> parts{
      {mirrored({{waist, 20}, {hip, 76}, {ankle, hem}, {ankle - leg, hem}, {2, crotch}})}};
  if (dice.chance(60))
    parts.push_back(
        {box(middle - waist, 20, middle + waist, 32), Finish::plain, dice.roll(50, 140)});
  return parts;
}

std::vector<Part> pullover(Dice& dice) {
  const Torso t = roll_torso(dice);
  std::vector<Part> parts{{sleeved(t, {dice.roll(140, 172), dice.roll(22, 46), dice.roll(18, 26)})},
                          neckline(t, dice.roll(4, 12))};
  const int tone = dice.roll(50, 140);
  parts.push_back(
      {box(middle - t.hem_width, t.hem - 12, middle + t.hem_width, t.hem), Finish::plain, tone});
  return parts;
}

std::vector<Part> dress(Dice& dice) {
  const int top = dice.roll(14, 30), bust = dice.roll(28, 44), waist = dice.roll(22, 34),
            line = dice.roll(96, 128);
  const int hem = dice.roll(216, 242), flare = dice.roll(34, 72);
  std::vector<Part> parts;
  if (dice.chance(50)) {  // with sleeves, else with straps
    const int length = dice.chance(50) ? dice.roll(36, 60) : dice.roll(90, 140),
              spread = dice.roll(14, 30);
    parts.push_back({mirrored({{14, top},
                               {bust, top + 6},
                               {bust + spread, top + length},
                               {bust + spread - 14, top + length + 6},
                               {bust - 4, top + 44},
                               {waist, line},
                               {flare, hem}})});
  } else {
    parts.push_back({mirrored({{bust, top + 36}, {waist, line}, {flare, hem}})});
    parts.push_back({box(middle - bust, top, middle - bust + 8, top + 40)});
    parts.push_back({box(middle + bust - 8, top, middle + bust, top + 40)});
  }
  if (dice.chance(50)) {
    parts.push_back({box(middle - waist, line - 4, middle + waist, line + 5), Finish::plain,
                     dice.roll(40, 150)});
  }
  return parts;
}

std::vector<Part> coat(Dice& dice) {
  Torso t = roll_torso(dice);
  t.hem = dice.roll(214, 242);
  t.hem_width += dice.roll(2, 12);
  std::vector<Part> parts{
      {sleeved(t, {dice.roll(138, 170), dice.roll(20, 42), dice.roll(20, 28)})}};
  const int gap = dice.roll(3, 7), lapel = dice.roll(60, 110);
  parts.push_back({mirrored({{t.neck, t.top}, {t.neck + 8, t.top + 30}, {gap, t.top + lapel}}),
                   Finish::plain, dice.roll(55, 80)});
  parts.push_back({mirrored({{t.neck - 8, t.top - 2}, {gap, t.top + lapel - 24}, {gap, t.hem + 2}}),
                   Finish::hole});
  return parts;
}

std::vector<Part> sandal(Dice& dice) {
  const int heel = dice.roll(4, 56), ground = dice.roll(188, 206), thick = dice.roll(10, 18);
  const Polygon sole{
      {20, ground - heel}, {80, ground - heel + 4}, {150, ground - 8}, {236, ground - 4}};
  std::vector<Part> parts{{band(sole, 0, thick)}};
  if (heel > 20)
    parts.push_back(
        {{{20, ground - heel}, {46, ground - heel}, {34, ground + thick}, {22, ground + thick}}});
  const int straps = dice.roll(2, 4);
  for (int i = 0; i < straps; ++i) {
    const int x = 60 + i * 150 / straps + dice.roll(-10, 10), lean = dice.roll(-30, 30),
              rise = dice.roll(36, 80);
    const int foot = ground - heel * std::max(0, 150 - x) / 150;
    parts.push_back({band({{x, foot}, {x + lean / 2, foot - rise}, {x + lean, foot - rise / 2}},
                          dice.roll(8, 14), 3)});
  }
  return parts;
}

std::vector<Part> shirt(Dice& dice) {
  const Torso t = roll_torso(dice);
  const bool is_short = dice.chance(15);
  const int length = is_short ? dice.roll(50, 80) : dice.roll(136, 168);
  std::vector<Part> parts{{sleeved(t, {length, dice.roll(20, 44), dice.roll(15, 22)})}};
  const int tone = dice.roll(0, 35);  // always dark: light trim would drown in a light cloth
  parts.push_back({mirrored({{t.neck, t.top - 6}, {t.neck + 8, t.top + 12}, {2, t.top + 34}}),
                   Finish::plain, tone});
  // Buttons on an even strip, so that no pattern hides them.
  parts.push_back({box(middle - 14, t.top + 34, middle + 14, t.hem - 2), Finish::plain, 95});
  const int step = dice.roll(24, 32);
  for (int y = t.top + 48; y < t.hem - 10; y += step) {
    parts.push_back({box(middle - 7, y, middle + 7, y + 13), Finish::plain, tone});
  }
  return parts;
}

std::vector<Part> sneaker(Dice& dice) {
  const int ground = dice.roll(180, 204), collar = dice.roll(84, 112), toe = dice.roll(26, 44),
            tongue = dice.roll(84, 110);
  std::vector<Part> parts{{{{16, ground - collar + 10},
                            {40, ground - collar + 24},
                            {tongue, ground - collar},
                            {tongue + 50, ground - toe - 22},
                            {222, ground - toe},
                            {242, ground},
                            {14, ground}}}};
  parts.push_back({box(12, ground - 12, 244, ground + 4), Finish::plain, dice.roll(40, 170)});
  if (dice.chance(70)) {
    const int tone = dice.chance(50) ? dice.roll(30, 60) : dice.roll(140, 180),
              x = dice.roll(80, 130);
    parts.push_back({band({{x, ground - 60}, {x + 40, ground - 16}}, 14, 0), Finish::plain, tone});
  }
  return parts;
}

std::vector<Part> bag(Dice& dice) {
  const int width = dice.roll(64, 108), top = dice.roll(92, 130), bottom = dice.roll(196, 226),
            taper = dice.roll(-16, 16);
  const int grip = dice.roll(24, 56), rise = dice.roll(36, 76), thick = dice.roll(7, 12);
  std::vector<Part> parts{{mirrored({{grip - 8, top - rise}, {grip, top}})}};
  parts.push_back(
      {mirrored({{grip - 8 - thick, top - rise + thick}, {grip - thick, top}}), Finish::hole});
  parts.push_back({mirrored({{width + taper, top}, {width, bottom}})});
  if (dice.chance(60)) {
    parts.push_back({mirrored({{width + taper, top}, {dice.roll(0, width), (top + bottom) / 2}}),
                     Finish::plain, dice.roll(55, 80)});
  }
  return parts;
}

std::vector<Part> ankle_boot(Dice& dice) {
  const int ground = dice.roll(206, 226), shaft = dice.roll(30, 90), width = dice.roll(88, 120),
            toe = dice.roll(40, 62);
  const int heel = dice.roll(0, 34);
  std::vector<Part> parts{{{{18, shaft},
                            {width, shaft + dice.roll(-8, 8)},
                            {width + 8, ground - toe - 40},
                            {222, ground - toe},
                            {240, ground},
                            {12, ground}}}};
  parts.push_back({box(12, ground - 8, 242, ground), Finish::plain, dice.roll(40, 150)});
  if (heel > 8)
    parts.push_back(
        {{{64, ground}, {90, ground - heel / 2}, {150, ground - heel / 2}, {170, ground}},
         Finish::hole});
  return parts;
}

}  // namespace

std::vector<Part> draw_garment(int label, Dice& dice) {
  static constexpr std::array drawn{t_shirt, trousers, pullover, dress, coat,
                                    sandal,  shirt,    sneaker,  bag,   ankle_boot};
  return drawn.at(static_cast<std::size_t>(label))(dice);
}

std::vector<std::string> garment_names() {
  return {"T-shirt", "trousers", "pullover", "dress", "coat",
          "sandal",  "shirt",    "sneaker",  "bag",   "ankle boot"};
}

}  // namespace arenite::data
