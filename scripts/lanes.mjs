// `npm run lanes [-- LANE…]`: runs tests on software drivers that behave as other devices do: one multiplies matrices in hardware
// (tensor cores), one has subgroups but no float16. A lane whose driver is not available is named in a line. Tests that a driver
// cannot pass are listed in the table of lanes, and printed, as are notes of tests ("note: …"). The last line is one total.
import { runLanes } from "./lanes/run-lanes.mjs";
import { lanes } from "./lanes/table.mjs";

await runLanes(lanes, process.argv.slice(2));
