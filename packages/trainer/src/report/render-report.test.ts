import { compile, type TopLevelSpec } from "vega-lite";
import { describe, expect, it, vi } from "vitest";
import { exampleMetrics, exampleSummary } from "../../test/example-run.js";
import type { RunSummary, Summary } from "../summary.js";
import { evaluationChart, lossChart, memoryChart, scaleChart } from "./charts.js";
import { renderReport } from "./render-report.js";

const count = (text: string, part: RegExp): number => [...text.matchAll(part)].length;

/** The rows that a chart draws, layer by layer. */
const drawn = (spec: TopLevelSpec | undefined): Record<string, unknown>[][] =>
  (spec as unknown as { layer: { data: { values: Record<string, unknown>[] } }[] }).layer.map(
    ({ data }) => data.values,
  );

describe("renderReport", () => {
  it("is one page that needs nothing else", async () => {
    const html = await renderReport(exampleSummary, exampleMetrics());
    expect(html).toMatch(/^<!doctype html>/);
    expect(html).not.toMatch(/<script|<link|<img|@import|src=|url\(/);
    const addresses = new Set([...html.matchAll(/https?:[^"' )]+/g)].map(([address]) => address));
    // The two that name SVG's dialects; neither is fetched.
    expect([...addresses].sort()).toEqual([
      "http://www.w3.org/1999/xlink",
      "http://www.w3.org/2000/svg",
    ]);
  });

  it("shows every run's results, three charts, and a cross for each skipped step", async () => {
    const html = await renderReport(exampleSummary, exampleMetrics());
    expect(count(html, /<svg /g)).toBe(3);
    expect(html).toContain("<td>99.12 %</td>");
    expect(html).toContain("<td>3 of 469</td>");
    expect(html).toContain("<td>32,768</td>");
    expect(count(html, /fill="#cc0000"/g)).toBe(3);
    expect(html).toContain("A red cross marks a skipped step (3)");
  });

  it("shows evaluations, a chart for each metric, and what time went into", async () => {
    const evaluations = [1, 2, 3].map((at) => ({
      ...{ kind: "evaluation" as const, precision: "O2", step: 150 * at, epoch: at, best: at < 3 },
      values: { loss: 1 / at, accuracy: at === 2 ? null : 0.9, "mean IoU": 0.5 },
    }));
    const runs = exampleSummary.runs.map((run) => ({
      ...run,
      test: { loss: 0.1, "mean IoU": 0.51 },
      deviceMsPerStep: 101.5,
      phases: { evaluation: { milliseconds: 3000, times: 3, peakBytes: 2 ** 20 } },
    }));
    const html = await renderReport({ ...exampleSummary, runs }, [
      ...exampleMetrics(20),
      ...evaluations,
    ]);
    expect(count(html, /<svg /g)).toBe(6);
    for (const text of ["<h2>Evaluations</h2>", "test mean IoU", "<td>0.5100</td>", "<td>102</td>"])
      expect(html).toContain(text);
    expect(html).toContain(
      '<td class="text">evaluations and other hooks</td><td>3.0 s</td><td>3</td><td>1,000</td><td>1.0 MiB</td>',
    );
    const [lines = [], best = []] = drawn(evaluationChart("accuracy", evaluations));
    expect([lines.map(({ step }) => step), best.map(({ step }) => step)]).toEqual([
      [150, 450],
      [150],
    ]);
  });

  it("lists what the program was given, and what it ran with and on", async () => {
    const runs = exampleSummary.runs.map(
      (run, i): RunSummary => ({
        ...run,
        hyperparameters: {
          optimizer: { algorithm: "AdamW", eps: i === 0 ? 1e-8 : 1e-4, betas: [0.9, 0.999] },
          groups: [{ weightDecay: 0 }, { weightDecay: 0.01 }],
          lossScale:
            i === 0
              ? {}
              : {
                  growthInterval: 2000,
                  dynamic: true,
                  minScale: 2 ** -16,
                  maxScale: 3.4028234663852886e38,
                },
        },
      }),
    );
    const summary: Summary = {
      ...exampleSummary,
      settings: { "batch-size": 128, limit: null },
      versions: { node: "24.0.0", "@halfstep/nn": "0.1.0", "@halfstep/optim": "0.1.0" },
      machine: { os: "Linux 6 x64", cpu: "a processor", cores: 2, memoryBytes: 2 ** 34 },
      runs,
    };
    const html = await renderReport(summary, exampleMetrics(4));
    for (const [name, value] of [
      ["batch-size", "128"],
      ["limit", "–"],
      ["eps", "1e-8 | 0.0001"],
      ["betas", "0.9, 0.999"],
      ["weightDecay", "0 | 0.01"],
      ["dynamic", "true"],
      ["minScale", "0.0000152588"],
      ["maxScale", "3.40282e+38"],
      ["growthInterval", "2000"],
      ["node", "24.0.0"],
      ["@halfstep/*", "0.1.0"],
      ["processor", "a processor, 2 cores"],
      ["memory", "16.0 GiB"],
    ])
      expect(html).toContain(`<dt>${name}</dt><dd>${value}</dd>`);
  });

  it("has axes that say what they show, with rounded ticks, and scales as powers of two", async () => {
    const html = await renderReport(exampleSummary, exampleMetrics(), { lossUnit: "nats" });
    const texts = [...html.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text ?? "");
    expect(texts).toEqual(
      expect.arrayContaining([
        ...["optimizer step", "training loss (nats)", "loss scale (powers of two)"],
        ...["memory (MiB)", "2¹⁵", "2¹⁸"],
      ]),
    );
    // Legends of the losses and of the memory.
    expect(texts.filter((text) => text === "bfloat16")).toHaveLength(2);
    expect(texts.filter((text) => /\d\.\d{4}/.test(text))).toEqual([]);
  });

  it("is rendered without a word on the terminal", async () => {
    const spies = (["warn", "error", "log", "info"] as const).map((name) =>
      vi.spyOn(console, name).mockImplementation(() => {}),
    );
    await renderReport(exampleSummary, exampleMetrics());
    const [float32, float16] = exampleSummary.runs;
    await renderReport(
      { ...exampleSummary, runs: [float32, float16].filter((run) => run !== undefined) },
      exampleMetrics().filter(({ precision }) => precision !== "bfloat16"),
    );
    const said = spies.flatMap((spy) => spy.mock.calls);
    for (const spy of spies) spy.mockRestore();
    expect(said).toEqual([]);
  });

  it("escapes what comes from outside", async () => {
    const html = await renderReport(
      { ...exampleSummary, task: '<b onclick="x">&' },
      exampleMetrics(5),
    );
    expect(html).not.toContain("<b onclick");
    expect(html).toContain("&#60;b onclick=&#34;x&#34;&#62;&#38;");
  });

  it("says so where there is nothing to draw", async () => {
    const html = await renderReport({ ...exampleSummary, runs: [] }, []);
    expect(count(html, /<svg /g)).toBe(0);
    expect(html).toContain("No steps were recorded.");
    expect(html).toContain("No run scaled its loss.");
    expect(html).toContain("No run was finished.");
  });

  it("stays small for a long run", async () => {
    const html = await renderReport(exampleSummary, exampleMetrics(20_000));
    expect(html.length).toBeLessThan(600_000);
  });
});

describe("charts", () => {
  it("draws a curve alone as wide as one of several", () => {
    const widthsOf = (precisions: readonly string[]): unknown => {
      const lines = exampleMetrics(4).filter(({ precision }) => precisions.includes(precision));
      const { scales = [], marks = [] } = compile(lossChart(lines)).spec;
      const scale = scales.find(({ name }) => name === "strokeWidth");
      return scale && "range" in scale
        ? scale.range
        : /"strokeWidth":\{"value":2.5\}/.test(JSON.stringify(marks));
    };
    expect(widthsOf(["float16", "float32"])).toEqual([4, 2.5]);
    expect(widthsOf(["float16"])).toBe(true);
  });

  it("names the unit of the loss where it is known, and no other", () => {
    const evaluations = exampleMetrics(2).map((line) => ({
      ...{ ...line, kind: "evaluation" as const, best: false, values: { loss: 1, iou: 0.5 } },
    }));
    const titleOf = (spec: TopLevelSpec): string => {
      const [, title] = /"title":"([^"]*loss[^"]*|iou[^"]*)"/.exec(JSON.stringify(spec)) ?? [];
      return title ?? "none";
    };
    expect(
      [undefined, "nats", "mean squared error"].map((unit) => [
        titleOf(lossChart(exampleMetrics(2), unit)),
        titleOf(evaluationChart("loss", evaluations, unit)),
        titleOf(evaluationChart("iou", evaluations, unit)),
      ]),
    ).toEqual([
      ["training loss", "loss", "iou"],
      ["training loss (nats)", "loss (nats)", "iou"],
      ["training loss (mean squared error)", "loss (mean squared error)", "iou"],
    ]);
  });

  it("draws the loss on a logarithmic axis unless a loss is not positive", () => {
    const scaleType = (spec: TopLevelSpec): string => {
      const scales = compile(spec).spec.scales ?? [];
      return String(scales.find(({ name }) => name === "y")?.type);
    };
    const metrics = exampleMetrics(20);
    expect(scaleType(lossChart(metrics))).toBe("log");
    expect(scaleType(lossChart(metrics.map((line) => ({ ...line, loss: 0 }))))).toBe("linear");
  });

  it("draws the loss scale of scaled runs only, as its changes and its skipped steps", () => {
    const [changes = [], skipped = []] = drawn(scaleChart(exampleMetrics()));
    expect(changes.map(({ precision, step, scale }) => [precision, step, scale])).toEqual([
      ["float16", 1, 262144],
      ["float16", 2, 131072],
      ["float16", 3, 65536],
      ["float16", 301, 32768],
      ["float16", 469, 32768],
    ]);
    expect(skipped.map(({ step }) => step)).toEqual([1, 2, 300]);
    const unscaled = exampleMetrics().filter(({ precision }) => precision !== "float16");
    expect(scaleChart(unscaled)).toBeUndefined();
  });

  it("draws four kinds of memory for every run", () => {
    const spec = memoryChart(exampleSummary.runs) as unknown as { data: { values: unknown[] } };
    expect(spec.data.values).toHaveLength(12);
    expect(spec.data.values[0]).toEqual({
      kind: "peak",
      precision: "float32",
      mebibytes: expect.closeTo(98.4, 6),
      label: "98.4 MiB",
    });
  });
});
