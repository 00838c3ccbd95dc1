import type { VNode } from "preact";
import { bytesText } from "../formats/number-text.js";
import { sentence } from "../site/sentence.js";
import { Shell } from "../site/shell.js";
import { showPage } from "../site/show-page.js";
import { useUrlState } from "../site/url-state.js";
import { type TaskName, taskLabels, taskNames } from "../train/config.js";
import { type SetupId, setupOf, setups } from "../train/setups.js";
import { Graph } from "./graph.js";
import { LaunchPanel } from "./launch-panel.js";
import { LaunchTable } from "./launch-table.js";
import { Memory } from "./memory.js";
import { type InsideState, insideFields } from "./page-state.js";
import { Planner } from "./planner.js";
import { stories } from "./stories.js";
import { useStep } from "./use-step.js";

function InsidePage(): VNode {
  const [state, change, strange] = useUrlState(insideFields);
  const { shown, selected, program, failure } = useStep(state);
  const launches = shown?.step.launches ?? [];
  const select = (launch: number): void => {
    const [first] = launches[launch]?.recorded ?? [];
    change({ at: first ?? -1 });
  };
  return (
    <Shell page="inside" strange={strange}>
      <section class="hero">
        <h1>What happens in one step?</h1>
        <p class="lead">
          A step of training is a list of small programs for the GPU, its launches. Here they are,
          with the format that each computes in and the reason. Then a planner makes the list
          shorter, without changing a bit of the result.
        </p>
        <Chips state={state} onState={change} />
        <Choices state={state} onState={change} />
        {failure !== undefined && (
          <p class="notice" role="alert">
            <b>The step could not be planned.</b> {sentence(failure)}
          </p>
        )}
      </section>
      {shown === undefined ? (
        <p role="status">{failure === undefined ? "Planning…" : ""}</p>
      ) : (
        <>
          <section class="toy" aria-labelledby="plan">
            <h2 id="plan">From what was recorded to what runs</h2>
            <Planner
              costs={shown.stages}
              stage={state.stage}
              onStage={(stage) => change({ stage })}
            />
          </section>
          <section class="step" aria-labelledby="launches">
            <h2 id="launches">Its launches</h2>
            <p class="summary" aria-live="polite">
              {summaryOf(state, shown)}
            </p>
            <Legend />
            <div class={selected < 0 ? "stages" : "stages split"}>
              <Graph launches={launches} selected={selected} onSelect={select} />
              {selected >= 0 && (
                <LaunchPanel
                  launches={launches}
                  index={selected}
                  recorded={shown.recorded}
                  at={state.at}
                  program={program}
                  tier={state.tier}
                  onTier={(tier) => change({ tier })}
                  onSelect={select}
                  onClose={() => change({ at: -1 })}
                />
              )}
            </div>
            <LaunchTable launches={launches} />
          </section>
          <Memory
            step={shown.step}
            most={shown.stages[0]?.bytes ?? 0}
            peak={shown.stages.find(({ id }) => id === shown.key.stage)?.bytes ?? 0}
            selected={selected}
          />
        </>
      )}
    </Shell>
  );
}

interface StateProps {
  readonly state: InsideState;
  readonly onState: (change: Partial<InsideState>) => void;
}

/** Places to begin at. */
function Chips({ state, onState }: StateProps): VNode {
  const story = stories.find((each) =>
    Object.entries(each.state).every(([name, value]) => state[name as keyof InsideState] === value),
  );
  return (
    <div class="stories">
      <p class="chips">
        <span>Try</span>
        {stories.map((each) => (
          <button
            key={each.label}
            type="button"
            class="pill"
            aria-pressed={each === story}
            onClick={() => onState(each.state)}
          >
            {each.label}
          </button>
        ))}
      </p>
      <p class="story" aria-live="polite">
        {story?.text ?? "Click a launch to see what it reads, what it writes, and its program."}
      </p>
    </div>
  );
}

/** The network, and the precision in which it trains. */
function Choices({ state, onState }: StateProps): VNode {
  return (
    <p class="controls">
      <label>
        a step of
        <select
          value={state.task}
          onChange={({ currentTarget }) =>
            onState({ task: currentTarget.value as TaskName, at: -1 })
          }
        >
          {taskNames.map((name) => (
            <option key={name} value={name}>
              {taskLabels[name]}
            </option>
          ))}
        </select>
      </label>
      <label>
        trained in
        <select
          value={state.setup}
          onChange={({ currentTarget }) =>
            onState({ setup: currentTarget.value as SetupId, at: -1 })
          }
        >
          {setups.map(({ id, label }) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </select>
      </label>
    </p>
  );
}

/** Formats as the drawing shows them. */
function Legend(): VNode {
  return (
    <p class="legend">
      {(["float32", "float16", "bfloat16"] as const).map((format) => (
        <span key={format}>
          <svg class={`edge-sample format-${format}`} viewBox="0 0 44 8" aria-hidden="true">
            <path class={`edge format-${format}`} d="M1 4H43" />
          </svg>
          {format}
        </span>
      ))}
    </p>
  );
}

function summaryOf(
  { setup }: InsideState,
  { step, stages, key }: NonNullable<ReturnType<typeof useStep>["shown"]>,
): string {
  const costs = stages.find(({ id }) => id === key.stage);
  const half = step.launches.filter(({ format }) => format !== "float32").length;
  const { casts = 0, bytes = 0 } = costs ?? {};
  return `${setupOf(setup).label}: ${step.launches.length} launches, ${half} of them in 16 bits, ${casts} ${casts === 1 ? "cast" : "casts"}, ${bytesText(bytes)} of memory.`;
}

showPage(<InsidePage />);
