import type { VNode } from "preact";
import { mostSteps, type TrainConfig } from "./config.js";
import { loopCode } from "./loop-code.js";
import { type SetupId, setupOf } from "./setups.js";
import { offerFile, type TrainingControls } from "./use-training.js";

interface TakeProps {
  readonly config: TrainConfig;
  readonly controls: TrainingControls;
  /** Of which lane weights and code are offered. */
  readonly chosen: SetupId;
  readonly onChoice: (lane: SetupId) => void;
}

/** What can be taken along: weights, metrics, and the loop as a program. */
export function Take({ config, controls, chosen, onChoice }: TakeProps): VNode {
  const id = config.setups.includes(chosen) ? chosen : (config.setups[0] as SetupId);
  const { lanes } = controls.training;
  const saveMetrics = (): void => {
    const lines = [...lanes].flatMap(([setup, { points }]) =>
      points.map((point) => JSON.stringify({ setup, ...point })),
    );
    const head = JSON.stringify({ config });
    offerFile(
      "metrics.jsonl",
      new Blob([[head, ...lines, ""].join("\n")], { type: "application/jsonl" }),
    );
  };
  return (
    <section class="toy" aria-labelledby="take">
      <h2 id="take">Take it with you</h2>
      <p class="controls">
        <label>
          in which precision
          <select
            value={id}
            onChange={({ currentTarget }) => onChoice(currentTarget.value as SetupId)}
          >
            {config.setups.map((each) => (
              <option key={each} value={each}>
                {setupOf(each).label}
              </option>
            ))}
          </select>
        </label>
        <button type="button" disabled={lanes.size === 0} onClick={() => controls.save(id)}>
          Weights (safetensors)
        </button>
        <button type="button" disabled={lanes.size === 0} onClick={saveMetrics}>
          Metrics of all (JSON lines)
        </button>
      </p>
      <details>
        <summary>The loop as a program</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard */}
        <pre tabIndex={0}>
          <code>{loopCode(config, setupOf(id), mostSteps)}</code>
        </pre>
      </details>
    </section>
  );
}
