// Talks with the engine, which runs beside the page. Whatever a board says becomes text, never HTML.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const number = new Intl.NumberFormat("en-GB");
  const url = URL.createObjectURL(new Blob([$("engine").textContent], { type: "text/javascript" }));
  const wasm = unpacked($("wasm").textContent);
  let worker = null;
  /** Workers that check payloads for the first one; a page from a disk lets no worker start others. */
  const helpers = [];
  const MOST_HELPERS = 7;

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }

  function moment(seconds) {
    const date = new Date(seconds * 1000);
    return Number.isNaN(date.getTime()) ? `second ${seconds}` : `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  }

  function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  async function engine() {
    worker?.terminate();
    for (const helper of helpers.splice(0)) helper.terminate();
    worker = new Worker(url);
    worker.onmessage = ({ data }) => answers[data.type](data);
    worker.onerror = ({ message }) => answers.trouble({ sentence: `The check broke off: ${message || "the engine failed"}.` });
    worker.postMessage({ type: "start", wasm: await wasm });
  }

  const answers = {
    begin({ checked, notChecked }) {
      for (const [id, lines] of [["checked", checked], ["unchecked", notChecked]]) {
        $(id).replaceChildren(...lines.map((line) => element("li", line)));
      }
    },
    async crew() {
      const asked = worker;
      const bytes = await wasm;
      const number = Math.min(MOST_HELPERS, (navigator.hardwareConcurrency || 1) - 1);
      const ports = Array.from({ length: number }, () => {
        const helper = new Worker(url);
        const { port1, port2 } = new MessageChannel();
        helper.onerror = worker.onerror;
        helper.postMessage({ type: "help", wasm: bytes, port: port1 }, [port1]);
        helpers.push(helper);
        return port2;
      });
      asked.postMessage({ type: "helpers", ports }, ports);
    },
    board({ board, of }) {
      $("which").textContent = `${board}: ${number.format(of)} blocks`;
    },
    progress({ height, of, postings }) {
      $("bar").max = Math.max(1, of);
      $("bar").value = height;
      $("step").textContent = `Block ${number.format(height)} of ${number.format(of)}, ${number.format(postings)} postings.`;
    },
    report({ report }) {
      $("work").hidden = true;
      $("result").hidden = false;
      show(report);
      $("verdict").focus();
    },
    receipt({ lines }) {
      $("lines").replaceChildren(...lines.map(({ name, found, sentence }) => {
        const line = element("li", `${found ? "✓" : "✗"} ${sentence} `);
        line.append(element("code", `${name.slice(0, 16)}…`, "id"));
        return line;
      }));
    },
    trouble({ sentence }) {
      $("work").hidden = true;
      $("trouble").textContent = sentence;
      $("trouble").hidden = false;
    },
  };

  function show(report) {
    const { ok, findings, open, counts } = report;
    const [first] = findings;
    const complete = ok && !first;
    $("sign").className = `verdict ${first ? "bad" : complete ? "good" : "open"}`;
    const isCopy = first && ["blob", "store"].includes(first.rule);
    $("verdict").textContent = isCopy ? "This copy is damaged or incomplete" : first ? "A rule was broken"
      : complete ? "Everything follows the rules" : "The check did not come to its end";
    $("reason").textContent = first ? first.reason
      : complete ? `${number.format(report.height)} blocks from genesis on, the last of ${moment(report.time)}. What was not checked stands below.`
      : open.join(" ");
    $("genesis").textContent = report.genesis;
    const figures = [
      ["blocks", report.height], ["postings", counts.postings], ["registrations", counts.registrations],
      ["submissions", counts.submissions], ["sums added again", counts.sums], ["clients now", report.clients],
    ];
    $("figures").replaceChildren(...figures.map(([name, value]) => {
      const made = element("div");
      made.append(element("dt", name), element("dd", number.format(value)));
      return made;
    }));
    $("findings").replaceChildren(...(findings.length ? [table(
      "What is wrong", ["block", "posting", "rule", "reason"],
      findings.map((one) => [one.height, one.posting ?? "–", one.rule, one.reason]))] : []));
    const remarks = [...(complete ? open : []), ...report.notes];
    $("remarks").replaceChildren(...remarks.map((line) => element("p", line, line.includes("TEST board") ? "warning" : "sub")));
    $("iterations").replaceChildren(...(report.iterations.length ? [table(
      "Iterations", ["study", "iteration", "outcome", "posts", "updates"],
      report.iterations.slice(-200).map((one) => [
        one.task, one.iteration, one.outcome, one.posts, one.counts ? one.counts.reduce((a, b) => a + b, 0) : "–"]))] : []));
  }

  function table(title, heads, rows) {
    const card = element("section", undefined, "card");
    const scroll = element("div", undefined, "scroll");
    const made = element("table");
    const head = element("tr");
    head.append(...heads.map((name) => Object.assign(element("th", name), { scope: "col" })));
    const body = element("tbody");
    for (const row of rows) {
      const line = element("tr");
      line.append(...row.map((cell) => element("td", String(cell))));
      body.append(line);
    }
    made.append(element("thead"), body);
    made.tHead.append(head);
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", title);
    scroll.append(made);
    card.append(element("h2", title), scroll);
    return card;
  }

  async function check(where) {
    $("trouble").hidden = $("result").hidden = true;
    $("work").hidden = false;
    $("bar").removeAttribute("value");
    $("which").textContent = where.file ? where.file.name : where.address;
    $("step").textContent = "Reading.";
    $("lines").replaceChildren();
    $("receipt").value = "";
    await engine();
    worker.postMessage({ type: "check", ...where });
  }

  $("source").addEventListener("submit", (event) => {
    event.preventDefault();
    if ($("address").value.trim()) check({ address: $("address").value });
  });
  $("file").addEventListener("change", () => {
    if ($("file").files[0]) check({ file: $("file").files[0] });
  });
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      $("drop").classList.toggle("over", name === "dragover");
      if (name === "drop" && event.dataTransfer.files[0]) check({ file: event.dataTransfer.files[0] });
    });
  }
  $("stop").addEventListener("click", () => {
    engine();
    answers.trouble({ sentence: "Stopped. Nothing was found to be wrong or right." });
  });
  $("receipt").addEventListener("change", async () => {
    const [file] = $("receipt").files;
    if (file && file.size < 1 << 24) worker.postMessage({ type: "receipt", text: await file.text() });
  });
  engine();
})();
