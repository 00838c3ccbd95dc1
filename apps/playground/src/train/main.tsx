import type { VNode } from "preact";
import { DataTable } from "../charts/data-table.js";
import { LineChart, type Series } from "../charts/line-chart.js";
import { decimalScale, powerScale } from "../charts/scale.js";
import { numberText, powerText } from "../formats/number-text.js";
import { sentence } from "../site/sentence.js";
import { Shell } from "../site/shell.js";
import { showPage } from "../site/show-page.js";
import { useUrlState } from "../site/url-state.js";
import { mostSteps, presets, type TrainConfig, trainFields } from "./config.js";
import { Controls } from "./controls.js";
import { DrawDigit } from "./draw-digit.js";
import { Histograms } from "./histograms.js";
import { LaneCard } from "./lane-card.js";
import { setupOf } from "./setups.js";
import { Take } from "./take.js";
import { type LaneState, type Training, useTraining } from "./use-training.js";

function TrainPage(): VNode {
  const [state, change, strange] = useUrlState(trainFields);
  const { lane: _, ...config } = state;
  const controls = useTraining(config);
  const { training, run, stage } = controls;
  const preset = presets.find((each) => isPreset(each.config, config));
  const steps = Math.max(...[...training.lanes.values()].map(({ points }) => points.length), 0);
  return (
    <Shell page="train" strange={strange}>
      <section class="hero">
        <h1>Train one network in several precisions</h1>
        <p class="lead">
          The same seed, the same data, different numbers. See where half precision keeps up, break
          it, and repair it.
        </p>
        <div class="stories">
          <p class="chips">
            <span>Try</span>
            {presets.map((each) => (
              <button
                key={each.id}
                type="button"
                class="pill"
                aria-pressed={each === preset}
                onClick={() => change(each.config)}
              >
                {each.label}
              </button>
            ))}
          </p>
          <p class="story" aria-live="polite">
            {preset?.text ?? "Your own experiment: the address holds it."}
          </p>
        </div>
        <Controls config={config} onChange={change} />
        <Transport controls={controls} steps={steps} />
        <Notice training={training} />
      </section>
      <section ref={stage} class="lanes" aria-label="Lanes" key={run}>
        {config.setups.map((id) => (
          <LaneCard
            key={id}
            setup={setupOf(id)}
            task={config.task}
            seed={config.seed}
            lane={training.lanes.get(id)}
          />
        ))}
      </section>
      <Curves config={config} training={training} />
      {config.task === "digits" && <DrawDigit config={config} controls={controls} />}
      <Histograms config={config} training={training} />
      <Take
        config={config}
        controls={controls}
        chosen={state.lane}
        onChoice={(lane) => change({ lane })}
      />
    </Shell>
  );
}

const isPreset = (preset: (typeof presets)[number]["config"], config: TrainConfig): boolean =>
  Object.entries(preset).every(
    ([name, value]) => String(value) === String(config[name as keyof TrainConfig]),
  );

interface TransportProps {
  readonly controls: ReturnType<typeof useTraining>;
  readonly steps: number;
}

/** Play, pause, one step, reset. */
function Transport({ controls, steps }: TransportProps): VNode {
  const { training, play, pause, step, reset } = controls;
  const { isPlaying, device, compiling, failure } = training;
  const isReady = device !== undefined && failure === undefined;
  const isOver = steps >= mostSteps;
  return (
    <div class="transport">
      <button
        type="button"
        class="main"
        disabled={!isReady || isOver}
        onClick={isPlaying ? pause : play}
      >
        {isPlaying ? "Pause" : "Play"}
      </button>
      <button type="button" disabled={!isReady || isOver || isPlaying} onClick={step}>
        One step
      </button>
      <button type="button" onClick={reset}>
        Reset
      </button>
      <p role="status">
        {compiling
          ? `compiling ${compiling.compiled} of ${compiling.total}: ${compiling.kernel}`
          : `step ${steps} of ${mostSteps}`}
        {device && <span class="where"> on {device.label}</span>}
      </p>
    </div>
  );
}

/** What went wrong, and what to do. */
function Notice({ training }: { training: Training }): VNode | null {
  const { device, failure, interruption } = training;
  if (failure !== undefined) {
    return (
      <p class="notice" role="alert">
        <b>Training stopped.</b> {sentence(failure)} Reset begins again from the same seed; if the
        GPU was lost, load the page again.
      </p>
    );
  }
  return (
    <>
      {interruption && (interruption.lostAt !== undefined || interruption.resumedAt !== 0) && (
        <p class="notice" role="alert">
          {interruptionText(interruption)}
        </p>
      )}
      {device?.reason !== undefined && (
        <p class="notice">
          <b>Without a GPU.</b> {device.reason} Small models train on the CPU, slowly, with the same
          numbers up to the order of sums.
        </p>
      )}
    </>
  );
}

function interruptionText({ lostAt, resumedAt }: NonNullable<Training["interruption"]>): string {
  if (lostAt === undefined)
    return `Training goes on from step ${resumedAt}, where this page was left. Reset begins again.`;
  if (resumedAt === undefined)
    return `The GPU was lost at step ${lostAt}. The browser starts it again…`;
  return `The GPU was lost at step ${lostAt} and is back. Training goes on from step ${resumedAt}, to the same numbers.`;
}

interface CurvesProps {
  readonly config: TrainConfig;
  readonly training: Training;
}

/** Losses and loss scales of all lanes on common axes. */
function Curves({ config, training }: CurvesProps): VNode {
  const lanes = config.setups.map((id) => ({ setup: setupOf(id), lane: training.lanes.get(id) }));
  const longest = Math.max(...lanes.map(({ lane }) => lane?.points.length ?? 0), 0);
  const x = { label: "steps", values: Array.from({ length: Math.max(longest, 2) }, (_, i) => i) };
  const losses = lanes.map(({ setup, lane }): Series => {
    const values = lane?.points.map(({ loss }) => loss) ?? [];
    return { name: setup.id, label: setup.label, values };
  });
  const scales = lanes.flatMap(({ setup, lane }): Series[] => {
    if (setup.scaling === "off") return [];
    const points = lane?.points ?? [];
    const crosses = points.flatMap(({ isSkipped }, i) => (isSkipped ? [i] : []));
    return [
      {
        name: setup.id,
        label: setup.label,
        values: points.map(({ scale }) => scale ?? Number.NaN),
        crosses,
      },
    ];
  });
  return (
    <section class="toy" aria-labelledby="curves">
      <h2 id="curves">Loss</h2>
      <p>The loss says how wrong the network is. It should fall, in each precision alike.</p>
      <LineChart
        title="Loss by step"
        x={x}
        y={{
          label: "loss",
          domain: domainOf(losses, [0.01, 1]),
          scale: decimalScale,
          text: (value) => numberText(value, 1),
        }}
        series={losses}
      />
      {scales.length > 0 && (
        <>
          <h3>Loss scale, and the steps that were skipped (✕)</h3>
          <p>
            Training multiplies the loss by this number, so that small gradients do not become 0. A
            step whose gradients are infinite is skipped.
          </p>
          <LineChart
            title="Loss scale by step"
            x={x}
            y={{
              label: "scale",
              domain: domainOf(scales, [1, 2 ** config.scale]),
              scale: powerScale,
              text: (value) => powerText(Math.round(Math.log2(value))),
            }}
            series={scales}
            height={180}
          />
        </>
      )}
      <p class="summary" aria-live="polite">
        {training.isPlaying
          ? ""
          : lanes.map(({ setup, lane }) => summaryOf(setup.label, lane)).join(" ")}
      </p>
      <DataTable summary="The curves as a table" label="Losses">
        <thead>
          <tr>
            <th scope="col">step</th>
            {lanes.map(({ setup }) => (
              <th key={setup.id} scope="col">
                {setup.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {x.values.map((step) =>
            step % 25 === 0 && step < longest ? (
              <tr key={step}>
                <th scope="row">{step}</th>
                {lanes.map(({ setup, lane }) => (
                  <td key={setup.id}>{cellOf(lane, step)}</td>
                ))}
              </tr>
            ) : null,
          )}
        </tbody>
      </DataTable>
    </section>
  );
}

function cellOf(lane: LaneState | undefined, step: number): string {
  const point = lane?.points[step];
  if (point === undefined) return "";
  return point.isSkipped ? "skipped" : numberText(point.loss, 4);
}

function summaryOf(label: string, lane: LaneState | undefined): string {
  const last = lane?.points.at(-1);
  if (lane === undefined || last === undefined) return "";
  const skipped = lane.points.filter(({ isSkipped }) => isSkipped).length;
  return `${label}: loss ${numberText(last.loss, 3)} after ${lane.points.length} steps${skipped > 0 ? `, ${skipped} skipped` : ""}.`;
}

/** The powers of two around all positive values. */
function domainOf(
  series: readonly Series[],
  initial: readonly [number, number],
): readonly [number, number] {
  let [low, high] = [Infinity, 0];
  for (const { values } of series) {
    for (const value of Array.from(values)) {
      if (!(value > 0 && value < Infinity)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (high === 0) return initial;
  return [2 ** Math.floor(Math.log2(low)), 2 ** Math.ceil(Math.log2(high) + 1e-9)];
}

showPage(<TrainPage />);
