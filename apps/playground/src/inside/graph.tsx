import type { VNode } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { useWidth } from "../charts/use-width.js";
import { launchName, shortName } from "./format-text.js";
import { type Direction, type Edge, layoutOf, neighbourOf } from "./layout.js";
import type { LaunchView } from "./step-view.js";

interface GraphProps {
  readonly launches: readonly LaunchView[];
  /** −1 for none. */
  readonly selected: number;
  readonly onSelect: (launch: number) => void;
}

const directions: readonly string[] = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];

/** The launches of a step and the values between them: down the left side, up the right one. Arrow keys move through it. */
export function Graph({ launches, selected, onSelect }: GraphProps): VNode {
  const [ref, width] = useWidth<HTMLDivElement>(720);
  const buttons = useRef<(HTMLButtonElement | null)[]>([]);
  const layout = useMemo(() => layoutOf(launches, width), [launches, width]);
  const { height, bands, boxes, edges } = layout;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!directions.includes(event.key)) return;
    event.preventDefault();
    const next = neighbourOf(boxes, Math.max(selected, 0), event.key as Direction);
    buttons.current[next]?.focus();
    onSelect(next);
  };
  return (
    <div class="graph">
      <p class="ways" aria-hidden="true">
        <span>forward ↓</span>
        <span>↑ backward</span>
      </p>
      {/* biome-ignore lint/a11y/useSemanticElements: a group of buttons in a drawing is no fieldset */}
      <div
        ref={ref}
        role="group"
        aria-label="Launches of the step. Arrow keys move between them."
        class={selected < 0 ? "stage" : "stage selecting"}
        style={{ height: `${height}px` }}
        onKeyDown={onKeyDown}
      >
        {bands.map(({ label, top, height: tall }) => (
          <div
            key={label}
            class="band"
            style={{ top: `${top}px`, height: `${tall}px` }}
            aria-hidden="true"
          >
            {label}
          </div>
        ))}
        <svg width={width} height={height} aria-hidden="true">
          {edges.map((edge) => (
            <path
              key={`${edge.from} ${edge.to}`}
              class={edgeClass(edge, launches, selected)}
              d={edge.path}
            />
          ))}
        </svg>
        {launches.map((launch, i) => {
          const { left = 0, top = 0, width: wide = 0 } = boxes[i] ?? {};
          return (
            <button
              key={i}
              ref={(button) => {
                buttons.current[i] = button;
              }}
              type="button"
              class={`launch format-${launch.format}`}
              style={{ left: `${left}px`, top: `${top}px`, width: `${wide}px` }}
              tabIndex={i === Math.max(selected, 0) ? 0 : -1}
              aria-pressed={i === selected}
              onClick={() => onSelect(i)}
            >
              <span class="name">{launchName(launch)}</span>{" "}
              <span class="format">{shortName(launch.format)}</span>{" "}
              <span class="unseen">
                {launch.part} {launch.module} {i + 1}
              </span>
            </button>
          );
        })}
      </div>
    </div>
  );
}

function edgeClass(
  { from, to, operand }: Edge,
  launches: readonly LaunchView[],
  selected: number,
): string {
  const dtype = launches[to]?.operands[operand]?.dtype ?? "float32";
  return `edge format-${dtype}${from === selected || to === selected ? " related" : ""}`;
}
