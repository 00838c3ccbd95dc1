import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { bytesText, numberText, percentText, powerText } from "../formats/number-text.js";
import type { TaskName } from "./config.js";
import type { Setup } from "./setups.js";
import { gridSize, plane, twoMoons } from "./two-moons.js";
import type { LaneState } from "./use-training.js";

interface LaneCardProps {
  readonly setup: Setup;
  readonly task: TaskName;
  readonly seed: number;
  readonly lane: LaneState | undefined;
}

/** One precision: what it has learned, and what it costs. */
export function LaneCard({ setup, task, seed, lane }: LaneCardProps): VNode {
  const last = lane?.points.at(-1);
  const skipped = lane?.points.filter(({ isSkipped }) => isSkipped).length ?? 0;
  const { statistics, accuracy, hash, origin, failure } = lane ?? {};
  return (
    <article class="lane" aria-labelledby={`lane-${setup.id}`}>
      <h2 id={`lane-${setup.id}`}>
        <svg class={`series series-${setup.id}`} viewBox="0 0 44 8" aria-hidden="true">
          <path d="M1 4H43" />
        </svg>
        {setup.label}
      </h2>
      <p class="about">{setup.about}</p>
      {task === "moons" && <Surface seed={seed} label={setup.label} />}
      {task === "text" && (
        <p class="written">{lane?.text.trimStart() || "It writes as soon as it trains."}</p>
      )}
      {task === "digits" && (
        <p class="big">
          {accuracy === undefined ? "—" : percentText(accuracy)}{" "}
          <small>of unseen digits read right</small>
        </p>
      )}
      <dl>
        <Figure name="loss" value={last ? numberText(last.loss, 3) : "—"} />
        {setup.scaling !== "off" && (
          <>
            <Figure
              name="loss scale"
              value={last?.scale === undefined ? "—" : powerText(Math.log2(last.scale))}
            />
            <Figure
              name="steps skipped"
              value={String(skipped)}
              isBad={skipped > 0 && last?.isSkipped}
            />
          </>
        )}
        <Figure
          name={setup.storage === "plain" ? "updates lost" : "lost if weights had 16 bits"}
          value={statistics ? percentText(statistics.lostUpdates) : "—"}
          isBad={setup.storage === "plain" && (statistics?.lostUpdates ?? 0) > 0.2}
        />
        <Figure
          name="memory of a step"
          value={statistics ? bytesText(statistics.stepBytes) : "—"}
        />
        <Figure
          name="weights, gradients, optimizer"
          value={statistics ? bytesText(statistics.keptBytes) : "—"}
        />
      </dl>
      {hash && (
        <p class="hash">
          hash of the weights <code>{hash.slice(0, 12)}</code>
        </p>
      )}
      {origin && <p class="origin">{origin}</p>}
      {failure && <p class="origin">{failure}</p>}
    </article>
  );
}

interface FigureProps {
  readonly name: string;
  readonly value: string;
  readonly isBad?: boolean | undefined;
}

function Figure({ name, value, isBad = false }: FigureProps): VNode {
  return (
    <div class={isBad ? "bad" : ""}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** The plane with the points of two moons over the canvas that the worker draws. */
function Surface({ seed, label }: { seed: number; label: string }): VNode {
  // The points are many, and the same in every report of the worker.
  const points = useMemo(() => <Points seed={seed} />, [seed]);
  return (
    <div
      class="plane"
      role="img"
      aria-label={`What ${label} holds for the two moons: a curve between circles and squares`}
    >
      <canvas class="surface" width={gridSize} height={gridSize} />
      {points}
    </div>
  );
}

function Points({ seed }: { seed: number }): VNode {
  const { points, labels } = twoMoons(seed);
  const { left, right, top, bottom } = plane;
  return (
    <svg viewBox={`${left} ${-top} ${right - left} ${top - bottom}`} aria-hidden="true">
      {Array.from(labels, (kind, i) => {
        const [x, y] = [points[2 * i] as number, -(points[2 * i + 1] as number)];
        return kind === 0 ? (
          <circle key={i} class="first" cx={x} cy={y} r={0.035} />
        ) : (
          <rect key={i} class="second" x={x - 0.032} y={y - 0.032} width={0.064} height={0.064} />
        );
      })}
    </svg>
  );
}
