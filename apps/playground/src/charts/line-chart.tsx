import type { VNode } from "preact";
import { linearScale, type Scale, spread } from "./scale.js";
import { useWidth } from "./use-width.js";

/** A line of a chart. Its look is the class `series-NAME`, which sets a colour and a dash. */
export interface Series {
  readonly name: string;
  readonly label: string;
  /** One y for each x of the chart; a line is broken where one is no number. */
  readonly values: ArrayLike<number>;
  /** Positions in `values` that get a cross. */
  readonly crosses?: readonly number[];
}

/** What a chart of lines shows. */
interface LineChartProps {
  /** Names the chart for people who do not see it. */
  readonly title: string;
  readonly x: { readonly label: string; readonly values: ArrayLike<number> };
  readonly y: {
    readonly label: string;
    readonly domain: readonly [number, number];
    readonly scale?: typeof linearScale;
    readonly text: (value: number) => string;
  };
  readonly series: readonly Series[];
  /** A value that the lines should reach. */
  readonly target?: { readonly value: number; readonly label: string };
  readonly height?: number;
}

const margin = { top: 12, bottom: 34, left: 54 };

/** The share of a chart's width that the names at the ends of lines may take. Longer ones stand above the chart. */
const mostOfNames = 0.34;

/** Lines over a common axis, each with its name at its end, or above where the chart is narrow. The table below holds the same numbers. */
export function LineChart({ title, x, y, series, target, height = 280 }: LineChartProps): VNode {
  const [ref, width] = useWidth<HTMLDivElement>(640);
  const longest = Math.max(...series.map(({ label }) => label.length), 0);
  const namesWidth = 14 + 7.4 * longest;
  const hasNames = namesWidth < mostOfNames * width;
  // A tick's number may stand at the end of the axis.
  const right = hasNames ? namesWidth : 18;
  const count = x.values.length;
  const last = count === 0 ? 1 : (x.values[count - 1] as number);
  const across = linearScale([0, last], [margin.left, width - right], width < 480 ? 3 : 6);
  const scale = (y.scale ?? linearScale)(y.domain, [height - margin.bottom, margin.top]);
  const ends = series.map(({ values }) => lastNumber(values));
  const heights = spread(
    ends.map((end) => (end === undefined ? height : scale(end))),
    15,
    [margin.top + 4, height - margin.bottom],
  );
  return (
    <div class="chart" ref={ref}>
      {!hasNames && (
        <ul class="names">
          {series.map(({ name, label }) => (
            <li key={name}>
              <svg class={`series series-${name}`} viewBox="0 0 44 8" aria-hidden="true">
                <path d="M1 4H43" />
              </svg>
              {label}
            </li>
          ))}
        </ul>
      )}
      <svg
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={title}
      >
        {scale.ticks.map((tick) => (
          <g key={tick} class="tick">
            <line x1={margin.left} x2={width - right} y1={scale(tick)} y2={scale(tick)} />
            <text x={margin.left - 7} y={scale(tick) + 4} text-anchor="end">
              {y.text(tick)}
            </text>
          </g>
        ))}
        {across.ticks.map((tick) => (
          <text key={tick} class="tick" x={across(tick)} y={height - 17} text-anchor="middle">
            {tick.toLocaleString("en-US")}
          </text>
        ))}
        <text class="axis" x={width - right} y={height - 3} text-anchor="end">
          {x.label}
        </text>
        {target && (
          <g class="target">
            <line
              x1={margin.left}
              x2={width - right}
              y1={scale(target.value)}
              y2={scale(target.value)}
            />
            <text x={margin.left + 6} y={scale(target.value) - 6}>
              {target.label}
            </text>
          </g>
        )}
        {series.map(({ name, label, values, crosses = [] }, i) => (
          <g key={name} class={`series series-${name}`}>
            <path d={pathOf(x.values, values, across, scale)} />
            {crosses.map((k) => (
              <path
                key={k}
                class="cross"
                d={crossAt(across(x.values[k] as number), scale(values[k] as number))}
              />
            ))}
            {hasNames && ends[i] !== undefined && (
              <text x={width - right + 8} y={(heights[i] as number) + 4}>
                {label}
              </text>
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}

const crossAt = (x: number, y: number): string =>
  `M${(x - 4).toFixed(1)} ${(y - 4).toFixed(1)}l8 8m0 -8l-8 8`;

function lastNumber(values: ArrayLike<number>): number | undefined {
  for (let i = values.length - 1; i >= 0; i--) {
    if (Number.isFinite(values[i])) return values[i];
  }
  return undefined;
}

function pathOf(xs: ArrayLike<number>, ys: ArrayLike<number>, across: Scale, up: Scale): string {
  let path = "";
  let isOpen = false;
  for (let i = 0; i < ys.length; i++) {
    const y = up(ys[i] as number);
    if (!Number.isFinite(y)) {
      isOpen = false;
      continue;
    }
    path += `${isOpen ? "L" : "M"}${across(xs[i] as number).toFixed(1)} ${y.toFixed(1)}`;
    isOpen = true;
  }
  return path;
}
