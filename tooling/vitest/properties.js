// Set-up of every test process: properties start from a committed seed, so that a run for everybody finds what every run finds.
// `npm run fuzz` sets other seeds.
import fc from "fast-check";

const committedSeed = 2026;
fc.configureGlobal({ seed: Number(process.env.HALFSTEP_PROPERTY_SEED ?? committedSeed) });
