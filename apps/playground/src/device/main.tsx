import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { DataTable } from "../charts/data-table.js";
import { numberText } from "../formats/number-text.js";
import { sentence } from "../site/sentence.js";
import { Shell } from "../site/shell.js";
import { showPage } from "../site/show-page.js";
import { workerErrorText } from "../site/worker-error.js";
import { setupOf } from "../train/setups.js";
import { adapterKey, knownHashes } from "./known-hashes.js";
import {
  type DeviceReport,
  hashedSteps,
  isClose,
  type Measurement,
  measuredSetups,
} from "./measure.js";
import type { DeviceNews } from "./worker.js";

interface State {
  readonly report?: DeviceReport;
  readonly isDone: boolean;
  readonly failure?: string;
}

function DevicePage(): VNode {
  const [{ report, isDone, failure }, setState] = useState<State>({ isDone: false });
  useEffect(() => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }: MessageEvent<DeviceNews>) => {
      setState((old) => afterNews(old, data));
    });
    worker.addEventListener("error", (event) => {
      setState((old) => ({ ...old, failure: workerErrorText(event) }));
    });
    return () => worker.terminate();
  }, []);
  return (
    <Shell page="device">
      <section class="hero">
        <h1>What can your GPU do?</h1>
        <p class="lead">
          This page trains a tiny network for {hashedSteps} steps in three precisions, and looks at
          the bits. Nothing is sent: copy the report if you want to share it.
        </p>
        <p role="status">{statusOf(report, isDone, failure)}</p>
        {failure !== undefined && (
          <p class="notice" role="alert">
            <b>No measurement.</b> {sentence(failure)} The page of formats needs no GPU, and small
            models train on the CPU.
          </p>
        )}
      </section>
      {report && <Abilities report={report} />}
      {report && <Measurements report={report} />}
      {report && isDone && <Copy report={report} />}
    </Shell>
  );
}

function afterNews(state: State, news: DeviceNews): State {
  switch (news.type) {
    case "report":
      return { ...state, report: news.report };
    case "done":
      return { ...state, isDone: true };
    case "failed":
      return { ...state, failure: news.message };
  }
}

function statusOf(
  report: DeviceReport | undefined,
  isDone: boolean,
  failure: string | undefined,
): string {
  if (failure !== undefined) return "";
  if (report === undefined) return "Looking for a GPU…";
  if (isDone) return "Done. The report at the end of the page can be copied into an issue.";
  return `Training ${report.measurements.length + 1} of ${measuredSetups.length}…`;
}

function Abilities({ report }: { report: DeviceReport }): VNode {
  const { adapter, tier, subgroupSize, features, limits, isFallback } = report;
  const rows: readonly (readonly [string, string])[] = [
    ["adapter", adapter + (isFallback ? ", a CPU in place of a GPU" : "")],
    ["half precision", tier === "native" ? "in shaders (native)" : "in memory (packed)"],
    ["subgroups", subgroupSize === 0 ? "none" : `of ${subgroupSize}`],
    ["largest buffer", `${numberText((limits.maxBufferSize ?? 0) / 2 ** 20)} MiB`],
    ["features", features.join(", ") || "none"],
  ];
  return (
    <section class="toy" aria-labelledby="abilities">
      <h2 id="abilities">Abilities</h2>
      <dl class="abilities">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Measurements({ report }: { report: DeviceReport }): VNode {
  const key = adapterKey(report);
  const known = Object.hasOwn(knownHashes, key) ? knownHashes[key] : undefined;
  return (
    <section class="toy" aria-labelledby="measurements">
      <h2 id="measurements">{hashedSteps} steps, and their bits</h2>
      <p>
        The hash is of all weights. The same adapter gives the same hash every time; another one may
        add in another order, and then the loss must agree with the CPU's to 1 %.
      </p>
      <dl class="measurements">
        {report.measurements.map((measurement) => (
          <div key={measurement.setup}>
            <dt>{setupOf(measurement.setup).label}</dt>
            <dd>
              <code>{measurement.hash}</code> {judgementOf(measurement, known?.[measurement.setup])}
            </dd>
            <dd>
              {compilingText(measurement)}first step {numberText(measurement.firstStepMs, 3)} ms,
              then {numberText(measurement.msPerStep, 3)} ms a step
            </dd>
          </div>
        ))}
      </dl>
      {report.measurements.length > 0 && <Programs report={report} />}
    </section>
  );
}

/** How long each program took to compile. */
function Programs({ report }: { report: DeviceReport }): VNode {
  const programs = report.measurements.flatMap(({ setup, compiled }) =>
    compiled.map((program) => ({ setup, ...program })),
  );
  return (
    <DataTable summary="Compile times" label="Compile times of programs">
      <thead>
        <tr>
          <th scope="col">program</th>
          <th scope="col">first needed by</th>
          <th scope="col">ms</th>
        </tr>
      </thead>
      <tbody>
        {programs.map(({ setup, kernel, ms }, i) => (
          <tr key={i}>
            <th scope="row">{kernel}</th>
            <td>{setupOf(setup).label}</td>
            <td>{numberText(ms, 3)}</td>
          </tr>
        ))}
      </tbody>
    </DataTable>
  );
}

function compilingText({ compiled }: Measurement): string {
  const slowest = compiled.toSorted((a, b) => b.ms - a.ms)[0];
  if (slowest === undefined) return "";
  const sum = compiled.reduce((total, { ms }) => total + ms, 0);
  return `${compiled.length} programs compiled in ${numberText(sum, 3)} ms, the slowest (${slowest.kernel}) in ${numberText(slowest.ms, 3)} ms; `;
}

function judgementOf(measurement: Measurement, known: string | undefined): string {
  if (known !== undefined) {
    return known === measurement.hash
      ? "as expected of this adapter"
      : `expected ${known}: please report it`;
  }
  return isClose(measurement)
    ? "new adapter; the loss agrees with the CPU"
    : "the loss differs from the CPU's: please report it";
}

function Copy({ report }: { report: DeviceReport }): VNode {
  const [outcome, setOutcome] = useState("");
  const shown = useRef<HTMLPreElement>(null);
  const text = JSON.stringify(report, null, 2);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setOutcome("copied");
    } catch {
      // Frames and some settings forbid it.
      if (shown.current) getSelection()?.selectAllChildren(shown.current);
      setOutcome(
        "The browser does not let this page copy. The report is selected: copy it by keyboard.",
      );
    }
  };
  return (
    <section class="toy" aria-labelledby="report">
      <h2 id="report">The report</h2>
      <p>
        <button type="button" class="main" onClick={copy}>
          Copy
        </button>{" "}
        <span role="status">{outcome}</span>
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard */}
      <pre tabIndex={0} ref={shown}>
        {text}
      </pre>
    </section>
  );
}

showPage(<DevicePage />);
