import type { VNode } from "preact";
import { bytesText, numberText } from "../formats/number-text.js";
import { launchName, shortName, storageText } from "./format-text.js";
import type { Tier } from "./page-state.js";
import type { ProgramView, RecordedView } from "./protocol.js";
import type { LaunchView, OperandView, OpView } from "./step-view.js";

interface LaunchPanelProps {
  readonly launches: readonly LaunchView[];
  readonly index: number;
  readonly recorded: readonly RecordedView[];
  /** The position in the recording of the launch that was asked for. */
  readonly at: number;
  /** Absent until the worker has written it. */
  readonly program: ProgramView | undefined;
  readonly tier: Tier;
  readonly onTier: (tier: Tier) => void;
  readonly onSelect: (launch: number) => void;
  readonly onClose: () => void;
}

const tiers: readonly { readonly id: Tier; readonly label: string }[] = [
  { id: "native", label: "with float16" },
  { id: "packed", label: "without" },
];

/** Everything about one launch: why it runs in its format, what it reads and writes, and its program. */
export function LaunchPanel({
  launches,
  index,
  recorded,
  at,
  program,
  tier,
  onTier,
  onSelect,
  onClose,
}: LaunchPanelProps): VNode {
  const launch = launches[index] as LaunchView;
  const { kernel, variant, ops, operands, recorded: positions } = launch;
  return (
    <section class="panel" aria-labelledby="launch">
      <button type="button" class="close" aria-label="Close the launch" onClick={onClose}>
        ✕
      </button>
      <h2 id="launch">
        <span class={`chip format-${launch.format}`}>{shortName(launch.format)}</span>{" "}
        {launchName(launch)}
      </h2>
      <p class="kernel">
        launch {index + 1} of {launches.length}, kernel <code>{kernel}</code>
        {variant !== "" && `, variant ${variant}`}
      </p>
      {!positions.includes(at) && (
        <p class="folded">
          <b>{recorded[at]?.title}</b> has no launch of its own any more. This one reads, or stores,
          what it would have left.
        </p>
      )}
      <h3>Why in {launch.format}?</h3>
      <ul class="reasons">
        {ops.length === 0 && <li>{upkeepText(launch)}</li>}
        {distinctOps(ops).map((op) => (
          <li key={`${op.module} ${op.name}`}>
            <b>{op.name}</b>
            {op.module !== "" && <> of {op.module}</>}
            {op.runsIn && <> in {op.runsIn}</>}: {op.why}.
          </li>
        ))}
      </ul>
      {positions.length > 1 && (
        <>
          <h3>Stands for {positions.length} recorded launches</h3>
          <p>{positions.map((position) => recorded[position]?.title).join(", ")}</p>
        </>
      )}
      <h3>Reads and writes</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled by keyboard */}
      <section class="scroll" tabIndex={0} aria-label="What the launch reads and writes">
        <table>
          <thead>
            <tr>
              {["", "value", "from", "shape", "stored as", "bytes"].map((head) => (
                <th key={head} scope="col">
                  {head || <span class="unseen">way</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {operands.map((operand, i) => (
              <Operand key={i} operand={operand} launches={launches} onSelect={onSelect} />
            ))}
          </tbody>
        </table>
      </section>
      <h3>Its program</h3>
      <p class="chips">
        <span>for a GPU</span>
        {tiers.map(({ id, label }) => (
          <button
            key={id}
            type="button"
            class="pill"
            aria-pressed={id === tier}
            onClick={() => onTier(id)}
          >
            {label}
          </button>
        ))}
      </p>
      {program && (
        <>
          <p class="kernel">
            {program.workgroups.join(" × ")} workgroups
            {program.operations !== undefined &&
              `, ${numberText(program.operations)} floating-point operations`}
          </p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard */}
          <pre class="wgsl" tabIndex={0}>
            <code>{program.code}</code>
          </pre>
        </>
      )}
    </section>
  );
}

/** Why launches of no op are as they are. */
const upkeepText = (launch: LaunchView): string =>
  launchName(launch) === "cast"
    ? "It brings a gradient to where the optimizer looks for it, in the format of the weights."
    : "It belongs to no op of the network: it checks gradients, moves the loss scale or updates weights.";

/** The backward pass applies many ops for one gradient, all for the same reason. */
function distinctOps(ops: readonly OpView[]): readonly OpView[] {
  const known = new Map(ops.map((op) => [[op.module, op.name, op.runsIn, op.why].join("|"), op]));
  return [...known.values()];
}

interface OperandProps {
  readonly operand: OperandView;
  readonly launches: readonly LaunchView[];
  readonly onSelect: (launch: number) => void;
}

const ways: Readonly<Record<OperandView["access"], string>> = {
  read: "reads",
  write: "writes",
  readwrite: "changes",
};

function Operand({ operand, launches, onSelect }: OperandProps): VNode {
  const { name, access, shape, bytes, writer } = operand;
  const source = writer === undefined ? undefined : launches[writer];
  return (
    <tr>
      <td>{ways[access]}</td>
      <th scope="row">{name}</th>
      <td>
        {source && (
          <button type="button" class="link" onClick={() => onSelect(writer as number)}>
            {launchName(source)} {(writer as number) + 1}
          </button>
        )}
      </td>
      <td>{shape.length === 0 ? "a number" : shape.join(" × ")}</td>
      <td>{storageText(operand)}</td>
      <td>{bytesText(bytes)}</td>
    </tr>
  );
}
