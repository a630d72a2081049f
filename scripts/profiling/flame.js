// Zooming, searching and details of a flame graph. The picture says all of it without this, but for the zoom.
(function () {
  "use strict";
  const svg = document.currentScript.closest("svg"), part = (id) => svg.querySelector("#" + id), view = part("frames");
  const width = Number(view.dataset.width), left = Number(view.dataset.left), letter = Number(view.dataset.letter);
  const frames = Array.from(view.querySelectorAll("g")).map((g) => {
    const rect = g.querySelector("rect"), text = g.querySelector("text");
    const title = g.querySelector("title").textContent;
    return {g, rect, text, title, name: title.slice(0, title.lastIndexOf("\n")), begin: Number(rect.getAttribute("x")) - left,
      size: Number(rect.getAttribute("width")), y: Number(rect.getAttribute("y"))};
  });
  const details = part("details"), found = part("found"), reset = part("reset"), search = part("search");
  let shown = {begin: 0, size: width, y: Infinity};

  // As picture.py does it: whole, cut, or not at all. Letters are of one width.
  function label(name, space) {
    const room = Math.floor((space - 6) / letter);
    if (name.length <= room) return name;
    if (room < 3) return "";
    const [, where, op, gradient = ""] = /^(.*: )(\w+?)(_grad_\w+)? \[[^\]]*\]$/.exec(name) || [];
    const shorter = where ? [where + op + gradient, ...(gradient ? [where + "…" + gradient.slice(1)] : [])] : [];
    const fitting = shorter.find((text) => text.length <= room);
    if (fitting) return fitting;
    return name.slice(0, room - 1) + "…";
  }

  function draw() {
    const scale = width / shown.size, slack = 1e-3;
    for (const frame of frames) {
      const begin = (frame.begin - shown.begin) * scale, size = frame.size * scale;
      const below = frame.y > shown.y && frame.begin <= shown.begin + slack &&
        frame.begin + frame.size >= shown.begin + shown.size - slack;
      const inside = begin > -slack && begin + size < width + slack && frame.y <= shown.y;
      frame.g.style.display = below || inside ? "" : "none";
      if (!below && !inside) continue;
      const x = left + (below ? 0 : begin), across = below ? width : size;
      frame.g.style.opacity = below && shown.size < width ? 0.45 : 1;
      frame.rect.setAttribute("x", x.toFixed(2));
      frame.rect.setAttribute("width", Math.max(across, 0.1).toFixed(2));
      if (frame.text === null) {
        if (label(frame.name, across) === "") continue;
        frame.text = frame.g.appendChild(document.createElementNS(svg.namespaceURI, "text"));
        frame.text.setAttribute("y", frame.y + 12);
      }
      frame.text.setAttribute("x", (x + 3).toFixed(2));
      frame.text.textContent = label(frame.name, across);
    }
    reset.style.display = shown.size < width ? "" : "none";
  }

  // Of what matches, the width that no other match is below.
  function highlight(pattern) {
    let matches = () => false;
    if (pattern) {
      try {
        const expression = new RegExp(pattern, "i");
        matches = (name) => expression.test(name);
      } catch (error) {
        matches = (name) => name.includes(pattern);
      }
    }
    const hits = frames.filter((frame) => {
      const hit = matches(frame.name);
      frame.g.classList.toggle("hit", hit);
      return hit;
    }).sort((a, b) => a.begin - b.begin || b.size - a.size);
    let end = -1, sum = 0;
    for (const hit of hits) {
      if (hit.begin + 1e-3 < end) continue;
      end = hit.begin + hit.size;
      sum += hit.size;
    }
    found.textContent = pattern ? `${(100 * sum / width).toFixed(1)} % match '${pattern}'` : "";
    search.textContent = pattern ? "clear search" : "search";
  }

  function ask() {
    highlight(found.textContent ? "" : window.prompt("Frames whose name matches (a regular expression):", "") || "");
  }

  for (const frame of frames) {
    frame.g.addEventListener("click", () => { shown = frame; draw(); });
    frame.g.addEventListener("mouseover", () => { details.textContent = frame.title.replace("\n", ": "); });
    frame.g.addEventListener("mouseout", () => { details.textContent = " "; });
  }
  const whole = () => { shown = {begin: 0, size: width, y: Infinity}; draw(); };
  reset.addEventListener("click", whole);
  search.addEventListener("click", ask);
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") whole();
    if (event.key === "f" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); ask(); }
  });
  search.style.display = "";
  part("how").textContent = "click a frame to zoom, Escape to go back, Ctrl-F to search";
})();
