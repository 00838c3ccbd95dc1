import type { VNode } from "preact";
import { DataTable } from "../charts/data-table.js";
import { launchName, shortName, storageText } from "./format-text.js";
import type { LaunchView, OperandView } from "./step-view.js";

/** The drawing in words. */
export function LaunchTable({ launches }: { launches: readonly LaunchView[] }): VNode {
  return (
    <DataTable summary="All launches as a table" label="Launches of the step">
      <thead>
        <tr>
          {["", "launch", "pass", "module", "runs in", "reads", "writes", "why"].map((head) => (
            <th key={head} scope="col">
              {head || <span class="unseen">number</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {launches.map((launch, i) => (
          <tr key={i}>
            <td>{i + 1}</td>
            <th scope="row">{launchName(launch)}</th>
            <td>{launch.part}</td>
            <td>{launch.module}</td>
            <td>{shortName(launch.format)}</td>
            <td>{formatsOf(launch, ({ access }) => access !== "write")}</td>
            <td>{formatsOf(launch, ({ access }) => access !== "read")}</td>
            <td>{launch.ops[0]?.why ?? ""}</td>
          </tr>
        ))}
      </tbody>
    </DataTable>
  );
}

const formatsOf = ({ operands }: LaunchView, isWanted: (operand: OperandView) => boolean): string =>
  [...new Set(operands.filter(isWanted).map(storageText))].join(", ");
