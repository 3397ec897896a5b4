"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const [drawing, canvas, list, details, search, count, main] =
    ["drawing", "canvas", "list", "details", "search", "count"].map($).concat(document.querySelector("main"));

  // Every text is set as text, never as markup.
  const make = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const button = (name, text, act) => {
    const made = make("button", name, text);
    made.type = "button";
    if (act) made.addEventListener("click", act);
    return made;
  };

  const things = new Map();
  for (const app of data.apps) {
    things.set("app " + app.id, { type: "app", ...app });
    for (const object of app.objects) things.set("object " + object.id, { type: "object", app: app.id, ...object });
  }
  for (const external of data.externals) things.set("object " + external.id, { type: "external", ...external });
  for (const [key, thing] of things) {
    thing.key = key;
    const words = [thing.kind, thing.name, thing.namespace, thing.id, thing.path, thing.place && thing.place.file];
    thing.words = words.filter(Boolean).join(" ").toLowerCase();
    thing.shapes = [];
    thing.edges = [];
  }
  for (const shape of drawing.querySelectorAll(".app, .node")) {
    const key = (shape.classList.contains("app") ? "app " : "object ") + shape.dataset.id;
    things.get(key).shapes.push(shape);
    shape.thing = things.get(key);
  }
  for (const line of drawing.querySelectorAll(".edge")) {
    for (const end of new Set([line.dataset.from, line.dataset.to])) things.get("object " + end).edges.push(line);
  }
  for (const shape of drawing.querySelectorAll(".app")) {
    const frame = shape.querySelector(".frame");
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(frame.getAttribute(name)));
    const far = document.createElementNS("http://www.w3.org/2000/svg", "text");
    far.textContent = shape.dataset.id;
    far.setAttribute("class", "far");
    far.setAttribute("x", x + width / 2);
    far.setAttribute("y", y + height / 2);
    far.setAttribute("font-size", Math.max(14, Math.min(64, (width * 1.5) / shape.dataset.id.length, height / 2)));
    far.thing = shape.thing;
    drawing.append(far);
  }

  // The view: which part of the drawing is seen.
  const [left, top_, wide, high] = drawing.getAttribute("viewBox").split(" ").map(Number);
  const whole = { x: left, y: top_, w: wide, h: high };
  let view = { ...whole };
  const scale = () => Math.min(canvas.clientWidth / view.w, canvas.clientHeight / view.h) || 1;
  const show = () => {
    drawing.setAttribute("viewBox", [view.x, view.y, view.w, view.h].map((n) => n.toFixed(1)).join(" "));
    drawing.classList.toggle("distant", data.apps.length > 3 && scale() < 0.45);
  };
  const frameOf = (box, least) => {
    // At its own size at most, so that a small graph is not blown up.
    const factor = Math.max(box.w / canvas.clientWidth, box.h / canvas.clientHeight, least || 1 / 1.25);
    const w = canvas.clientWidth * factor, h = canvas.clientHeight * factor;
    view = { x: box.x + box.w / 2 - w / 2, y: box.y + box.h / 2 - h / 2, w, h };
    show();
  };
  const fit = () => frameOf(whole);
  const zoom = (factor, px, py) => {
    const now = scale(), next = Math.min(4, Math.max(0.02, now * factor));
    const x = px === undefined ? canvas.clientWidth / 2 : px, y = py === undefined ? canvas.clientHeight / 2 : py;
    const at = { x: view.x + x / now, y: view.y + y / now };
    view = { x: at.x - x / next, y: at.y - y / next, w: canvas.clientWidth / next, h: canvas.clientHeight / next };
    show();
  };
  const shift = (x, y) => {
    const now = scale();
    view = { ...view, x: view.x + x / now, y: view.y + y / now };
    show();
  };
  $("in").addEventListener("click", () => zoom(1.3));
  $("out").addEventListener("click", () => zoom(1 / 1.3));
  $("fit").addEventListener("click", fit);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const place = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.clientX - place.left, event.clientY - place.top);
  }, { passive: false });
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button === 0) drag = { x: event.clientX, y: event.clientY, moved: 0 };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const x = event.clientX - drag.x, y = event.clientY - drag.y;
    if (drag.moved === 0 && Math.hypot(x, y) < 4) return;
    if (drag.moved === 0) canvas.setPointerCapture(event.pointerId);
    canvas.classList.add("moving");
    shift(-x, -y);
    drag = { x: event.clientX, y: event.clientY, moved: 1 };
  });
  const drop = () => {
    canvas.classList.remove("moving");
    const moved = drag && drag.moved;
    drag = null;
    return moved;
  };
  let swallow = false;
  canvas.addEventListener("pointerup", () => { swallow = Boolean(drop()); });
  canvas.addEventListener("pointercancel", drop);
  canvas.addEventListener("click", (event) => {
    if (swallow) { swallow = false; return; }
    let shape = event.target;
    while (shape && shape !== canvas && !shape.thing) shape = shape.parentNode;
    if (shape && shape.thing) pick(shape.thing, { still: true });
  });

  // The list, which is also the way for keyboards and screen readers.
  const items = [];
  const item = (thing, name, text, what) => {
    const made = button(name + " " + (thing.family || ""), undefined, () => pick(thing));
    if (thing.family) made.append(make("i"));
    made.append(make("span", "who", text), make("span", "what", what));
    made.tabIndex = items.length ? -1 : 0;
    made.thing = thing;
    items.push(made);
    return made;
  };
  for (const app of data.apps) {
    const group = make("ul"), first = make("li");
    first.append(item(things.get("app " + app.id), "app-item", app.id, app.kind));
    group.append(first);
    for (const object of app.objects) {
      const line = make("li");
      line.append(item(things.get("object " + object.id), "object-item", object.name, object.kind));
      group.append(line);
    }
    list.append(group);
  }
  if (data.externals.length) {
    const group = make("ul");
    for (const external of data.externals) {
      const line = make("li");
      line.append(item(things.get("object " + external.id), "object-item", external.name, external.kind + ", " + external.absence));
      group.append(line);
    }
    list.append(group);
  }
  const seen = () => items.filter((made) => !made.parentNode.hidden);
  const focusItem = (made) => {
    if (!made) return;
    for (const other of items) other.tabIndex = other === made ? 0 : -1;
    made.focus();
  };
  list.addEventListener("keydown", (event) => {
    const shown = seen(), here = shown.indexOf(document.activeElement);
    const next = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (next < 0) search.focus();
    else focusItem(shown[Math.min(next, shown.length - 1)]);
  });

  // Search: every word must be there.
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let apps = 0, objects = 0;
    const hits = new Set();
    for (const thing of things.values()) {
      const hit = words.every((word) => thing.words.includes(word));
      if (hit) {
        hits.add(thing);
        if (thing.type === "app") apps += 1;
        else objects += 1;
      }
      for (const shape of thing.shapes) {
        shape.classList.toggle("miss", !hit);
        shape.classList.toggle("hit", hit && words.length > 0);
      }
    }
    for (const made of items) {
      const kept = hits.has(made.thing) || (made.thing.type === "app" && made.thing.objects.some((object) => hits.has(things.get("object " + object.id))));
      made.parentNode.hidden = !kept;
      if (made.thing.type === "app" && kept) for (const shape of made.thing.shapes) shape.classList.remove("miss");
    }
    for (const group of list.children) group.hidden = [...group.children].every((line) => line.hidden);
    const shown = seen();
    for (const made of items) made.tabIndex = made === shown[0] ? 0 : -1;
    drawing.classList.toggle("searching", words.length > 0);
    const plural = (number, word) => number + " " + word + (number === 1 ? "" : "s");
    const counts = [[apps, "app"], [objects, "object"]].filter(([number]) => number).map(([number, word]) => plural(number, word));
    count.textContent = counts.join(", ") || "nothing found";
    return words.length ? hits : new Set();
  };
  // The view follows the search: what was found, or everything again.
  const follow = () => {
    const boxes = [...filter()].flatMap((thing) => thing.shapes).map((shape) => shape.getBBox());
    if (boxes.length) {
      const x = Math.min(...boxes.map((box) => box.x)), y = Math.min(...boxes.map((box) => box.y));
      const right = Math.max(...boxes.map((box) => box.x + box.width)), bottom = Math.max(...boxes.map((box) => box.y + box.height));
      frameOf({ x: x - 40, y: y - 40, w: right - x + 80, h: bottom - y + 80 });
    } else if (!search.value) fit();
  };
  search.addEventListener("input", follow);
  search.addEventListener("keydown", (event) => {
    const first = seen().find((made) => made.thing.words && search.value.toLowerCase().split(/\s+/).filter(Boolean).every((word) => made.thing.words.includes(word)));
    if (event.key === "ArrowDown") { event.preventDefault(); focusItem(first || seen()[0]); }
    if (event.key === "Enter" && first) pick(first.thing);
    if (event.key === "Escape") { search.value = ""; follow(); }
  });

  // Details.
  const copyText = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  const paint = (cell, line) => {
    const put = (name, text) => { if (text) cell.append(name ? make("span", name, text) : text); };
    const value = (text) => {
      if (/^(\s*)(-?\d[\d.]*)$/.test(text)) put("y-number", text);
      else if (/^\s*(true|false|null|\{\}|\[\]|\|[-+]?)$/.test(text)) put("y-word", text);
      else put("y-text", text);
    };
    const comment = /^\s*#/.test(line);
    if (comment) return put("y-comment", line);
    const entry = /^(\s*(?:- )*)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#{[\-][^:#]*|-[^\s:]+)(:)(?= |$)(.*)$/.exec(line);
    if (entry) {
      put("", entry[1]);
      put("y-key", entry[2]);
      put("", entry[3]);
      return value(entry[4]);
    }
    const dash = /^(\s*(?:- )*)(.*)$/.exec(line);
    put("", dash[1]);
    return value(dash[2]);
  };
  const code = (text, start, from) => {
    const block = make("div", "code"), table = make("table"), rows = new Map();
    block.tabIndex = 0;
    text.replace(/\n$/, "").split("\n").forEach((written, index) => {
      // What would not be seen as itself, as marks that turn the direction of writing, is shown as its code.
      const line = written.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]/gu,
        (char) => "\\u" + char.codePointAt(0).toString(16).padStart(4, "0"));
      const row = make("tr"), content = make("td", "text");
      row.append(make("td", "number", String(start + index)));
      paint(content, line);
      if (from) {
        const cell = make("td", "from"), place = from.lines[index];
        if (place) {
          row.className = "sourced";
          const elsewhere = typeof place === "string";
          row.title = elsewhere ? place : from.file + ":" + place;
          cell.append(button("", "⟵ " + (elsewhere ? place.replace(/^.*[/]/, "") : place)));
          cell.firstChild.setAttribute("aria-label", "Source: " + row.title);
          row.addEventListener("click", () => from.open(place, row));
        }
        row.append(cell);
      }
      row.append(content);
      rows.set(start + index, row);
      table.append(row);
    });
    block.append(table);
    return { block, rows };
  };
  const heading = (text, copied) => {
    const made = make("h3", "", text);
    if (copied !== undefined) {
      const copy = button("copy", "Copy", async () => {
        await copyText(copied);
        copy.textContent = "Copied";
        setTimeout(() => { copy.textContent = "Copy"; }, 1500);
      });
      made.append(copy);
    }
    return made;
  };
  const facts = (pairs) => {
    const made = make("dl");
    for (const [name, text, act] of pairs) {
      if (!text) continue;
      const fact = make("dd", "", act ? undefined : text);
      if (act) fact.append(button("place", text, act));
      made.append(make("dt", "", name), fact);
    }
    return made;
  };
  const placeText = (place) => (place && place.file ? place.file + (place.line ? ":" + place.line : "") : "");
  const called = (thing) => (thing.type === "app" ? thing.id : thing.kind + " " + thing.name);
  const relations = (title, pairs) => {
    if (!pairs.length) return [];
    const made = make("ul", "relations");
    for (const [how, thing] of pairs) {
      const line = make("li");
      line.append(make("span", "how", how + " "), button("", called(thing), () => pick(thing)));
      const app = thing.type === "object" ? thing.app : thing.type === "external" ? thing.absence : "";
      if (app) line.append(make("span", "how", " (" + app + ")"));
      made.append(line);
    }
    return [heading(title), made];
  };
  const specBlock = (app) => {
    const shown = code(app.text, app.place.line || 1);
    return {
      nodes: [heading("Spec " + placeText(app.place), app.text), shown.block],
      open: (number) => {
        for (const row of shown.rows.values()) row.classList.remove("here");
        const row = shown.rows.get(number); // none for a line of another file
        if (row) { row.classList.add("here"); row.scrollIntoView({ block: "nearest" }); }
      },
      mark: (number) => { const row = shown.rows.get(number); if (row) row.classList.add("here"); },
    };
  };
  const describe = (thing) => {
    const nodes = [];
    if (thing.type === "app") {
      nodes.push(make("h2", "", thing.id));
      nodes.push(facts([["Kind", thing.kind], ["What", thing.summary], ["Spec", placeText(thing.place)]]));
      const how = (pairs) => pairs.map(([id, words]) => [words, things.get("app " + id)]);
      nodes.push(...relations("Needs", how(thing.needs)));
      nodes.push(...relations("Needed by", how(thing.needed)));
      nodes.push(...relations("Objects", thing.objects.map((object) => ["wave " + object.wave, things.get("object " + object.id)])));
      if (thing.text) nodes.push(...specBlock(thing).nodes);
      return nodes;
    }
    nodes.push(make("h2", "", called(thing)));
    const app = things.get("app " + thing.app);
    const spec = app && app.text ? specBlock(app) : null;
    if (thing.type === "object") {
      nodes.push(facts([["App", thing.app], ["API", thing.apiVersion], ["Namespace", thing.namespace],
        ["Wave", String(thing.wave)], ["File", thing.path],
        ["Spec", placeText(thing.place), spec && (() => spec.open(thing.place.line))]]));
    } else {
      nodes.push(facts([["Namespace", thing.namespace]]));
      nodes.push(make("p", "note", thing.absence));
    }
    const ends = (mine, other) => data.edges.filter((edge) => edge[mine] === thing.id).map((edge) => [edge[2], things.get("object " + edge[other])]);
    nodes.push(...relations("Needs", ends(0, 1)));
    nodes.push(...relations("Needed by", ends(1, 0)));
    if (thing.type !== "object") return nodes;
    const chosen = { row: null };
    const open = (place, row) => {
      if (chosen.row) chosen.row.classList.remove("here");
      chosen.row = row;
      row.classList.add("here");
      if (spec) spec.open(place);
    };
    const known = thing.lines.some(Boolean);
    nodes.push(heading("Manifest", thing.yaml));
    if (known) nodes.push(make("p", "note", "⟵ marks the source of a line. kaigen chose the other lines, or combined several sources."));
    nodes.push(code(thing.yaml, 1, { lines: thing.lines, file: thing.place.file, open }).block);
    if (spec) {
      nodes.push(...spec.nodes);
      spec.mark(thing.place.line);
    }
    return nodes;
  };
  let picked = null;
  const close = () => {
    for (const shape of drawing.querySelectorAll(".picked, .lit")) shape.classList.remove("picked", "lit");
    drawing.classList.remove("picking");
    for (const made of items) made.removeAttribute("aria-current");
    picked = null;
    details.replaceChildren();
    main.classList.remove("open");
  };
  const pick = (thing, how = {}) => {
    const first = !main.classList.contains("open");
    const before = { ...view }, width = canvas.clientWidth;
    close();
    picked = thing;
    const back = button("close", "×", () => { close(); history.replaceState(null, "", location.pathname); });
    back.setAttribute("aria-label", "Close details");
    details.append(back, ...describe(thing));
    details.scrollTop = 0;
    main.classList.add("open");
    for (const shape of thing.shapes) shape.classList.add("picked");
    if (thing.type !== "app") drawing.classList.add("picking");
    for (const line of thing.edges) line.classList.add("lit");
    for (const made of items) {
      if (made.thing === thing) {
        made.setAttribute("aria-current", "true");
        made.scrollIntoView({ block: "nearest" });
      }
    }
    if (how.still && first) view = { ...before, w: before.w * (canvas.clientWidth / width) };
    if (thing.shapes.length && (!how.still || !inSight(thing.shapes[0]))) {
      // With its app around it, unless that would make it too small to read.
      const around = thing.type === "object" ? app(thing).shapes[0] : thing.shapes[0];
      const own = thing.shapes[0].getBBox();
      let box = around.getBBox();
      if (thing.type !== "app" && (thing.type === "external" || box.width > canvas.clientWidth * 1.5 || box.height > canvas.clientHeight * 1.5)) {
        box = { x: own.x - 200, y: own.y - 150, width: own.width + 400, height: own.height + 300 };
      }
      frameOf({ x: box.x - 20, y: box.y - 20, w: box.width + 40, h: box.height + 40 }, how.still ? 1 / scale() : undefined);
    } else show();
    history.replaceState(null, "", "#" + encodeURIComponent(thing.key));
  };
  const app = (thing) => things.get("app " + thing.app);
  const inSight = (shape) => {
    const box = shape.getBBox(), now = scale();
    const w = canvas.clientWidth / now, h = canvas.clientHeight / now;
    return box.x < view.x + w && box.x + box.width > view.x && box.y < view.y + h && box.y + box.height > view.y;
  };
  addEventListener("keydown", (event) => {
    if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { "/": () => search.focus(), "+": () => zoom(1.3), "=": () => zoom(1.3), "-": () => zoom(1 / 1.3), 0: fit, Escape: close }[event.key];
    const move = event.target === canvas && { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] }[event.key];
    if (!act && !move) return;
    event.preventDefault();
    if (move) shift(...move);
    else act();
  });
  addEventListener("resize", () => { const now = scale(); view = { ...view, w: canvas.clientWidth / now, h: canvas.clientHeight / now }; show(); });
  addEventListener("beforeprint", () => drawing.setAttribute("viewBox", [whole.x, whole.y, whole.w, whole.h].join(" ")));
  addEventListener("afterprint", show);

  filter();
  fit();
  const asked = () => {
    let key = "";
    try { key = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    if (things.has(key) && (!picked || picked.key !== key)) pick(things.get(key));
  };
  addEventListener("hashchange", asked);
  asked();
})();
