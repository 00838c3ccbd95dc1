import type { VNode } from "preact";
import { DataTable } from "../charts/data-table.js";
import { bytesText } from "../formats/number-text.js";
import type { StageCosts } from "./protocol.js";
import { type Stage, type StageId, stages } from "./stages.js";

interface PlannerProps {
  readonly costs: readonly StageCosts[];
  readonly stage: StageId;
  readonly onStage: (stage: StageId) => void;
}

const stageOf = (id: StageId): Stage => stages.find((stage) => stage.id === id) as Stage;

/** A slider from the recorded step to the planned one, pass by pass, with what each saves. */
export function Planner({ costs, stage, onStage }: PlannerProps): VNode {
  // A pass that finds nothing to do leaves the step as it is: the slider jumps over it.
  const effective = costs.filter(({ isEffective }) => isEffective);
  const place = costs.findIndex(({ id }) => id === stage);
  const at = effective.findLastIndex((each) => costs.indexOf(each) <= place);
  const [recorded, now] = [costs[0], effective[at]];
  if (!recorded || !now) return <div class="planner" />;
  const { label, text } = stageOf(now.id);
  const go = (to: number): void => {
    const next = effective[to];
    if (next) onStage(next.id);
  };
  return (
    <div class="planner">
      <div class="steps">
        <button
          type="button"
          aria-label="Back by one pass of the planner"
          disabled={at <= 0}
          onClick={() => go(at - 1)}
        >
          ‹
        </button>
        <label class="slider">
          <span>
            planning <b>{at === 0 ? label : `${at} of ${effective.length - 1}: ${label}`}</b>
          </span>
          <input
            type="range"
            min={0}
            max={effective.length - 1}
            value={at}
            aria-valuetext={label}
            onInput={({ currentTarget }) => go(Number(currentTarget.value))}
          />
        </label>
        <button
          type="button"
          aria-label="On by one pass of the planner"
          disabled={at >= effective.length - 1}
          onClick={() => go(at + 1)}
        >
          ›
        </button>
      </div>
      <p class="story" aria-live="polite">
        {text}
      </p>
      <dl class="costs">
        <Cost name="launches" now={now.launches} before={recorded.launches} text={String} />
        <Cost name="casts" now={now.casts} before={recorded.casts} text={String} />
        <Cost name="memory" now={now.bytes} before={recorded.bytes} text={bytesText} />
      </dl>
      <DataTable summary="What each pass saves" label="Passes of the planner">
        <thead>
          <tr>
            {["pass", "launches", "casts", "memory"].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {costs.map(({ id, launches, casts, bytes, isEffective }) => (
            <tr key={id} class={isEffective ? "" : "idle"}>
              <th scope="row">{stageOf(id).label}</th>
              <td>{isEffective ? launches : "nothing to do"}</td>
              <td>{isEffective ? casts : ""}</td>
              <td>{isEffective ? bytesText(bytes) : ""}</td>
            </tr>
          ))}
        </tbody>
      </DataTable>
    </div>
  );
}

interface CostProps {
  readonly name: string;
  readonly now: number;
  readonly before: number;
  readonly text: (cost: number) => string;
}

/** A cost, and a bar that has shrunk from what it was as recorded. */
function Cost({ name, now, before, text }: CostProps): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <b>{text(now)}</b>
        {now !== before && <small> of {text(before)}</small>}
        <span class="bar" aria-hidden="true">
          <span style={{ width: `${before === 0 ? 0 : (100 * now) / before}%` }} />
        </span>
      </dd>
    </div>
  );
}
