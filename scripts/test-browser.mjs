// `npm run test:browser [-- LANE…]`: training in a headless Chromium, compared with Node on the same software driver. A Chromium is
// installed where there is none and the machine allows it. It ends as `npm run lanes` does. `npm run test:browser:full` builds the packages,
// and also bundles them as programs of others do. `npm run test:browser:leaks` watches memory for half an hour.
import { runLanes } from "./lanes/run-lanes.mjs";
import { browserLanes, fullBrowserLanes, leakLanes } from "./lanes/table.mjs";

const flags = { "--full": fullBrowserLanes, "--leaks": leakLanes };
const given = process.argv.slice(2);
const flag = given.find((name) => Object.hasOwn(flags, name));
await runLanes(
  flags[flag] ?? browserLanes,
  given.filter((name) => name !== flag),
);
