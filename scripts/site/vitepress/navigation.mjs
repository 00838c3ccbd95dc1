import { addressOf } from "../addresses.mjs";

const page = (text, file) => ({ text, link: `/${addressOf(file)}` });
const guide = (text, name) => page(text, `docs/guide/${name}.md`);
const packageNames = [
  "formats",
  "safetensors",
  "grad-scaler",
  "autocast",
  "device",
  "data",
  "kernels",
  "tensor",
  "optim",
  "nn",
  "models",
  "trainer",
];

/** Navigation of the English pages. */
export const english = {
  nav: [
    page("Tutorial", "docs/guide/tutorial.md"),
    page("Guide", "docs/README.md"),
    { text: "API", link: "/api/index.html", target: "_self" },
    page("Decisions", "docs/decisions/README.md"),
  ],
  sidebar: [
    {
      text: "Begin",
      items: [guide("Your first AMP loop", "tutorial")],
    },
    {
      text: "Guides",
      items: [
        guide("Overflow and underflow", "overflow-and-underflow"),
        guide("Gradient accumulation", "accumulation"),
        guide("Checkpoints", "checkpoints"),
        guide("Your own kernel", "own-kernel"),
        guide("Your own op", "own-op"),
        guide("Your own optimizer", "own-optimizer"),
        guide("Raw WebGPU", "raw-webgpu"),
      ],
    },
    {
      text: "Packages",
      collapsed: true,
      items: packageNames.map((name) => page(name, `packages/${name}/README.md`)),
    },
    {
      text: "Project",
      items: [
        page("What Halfstep is", "README.md"),
        page("Architecture", "ARCHITECTURE.md"),
        page("Contributing", "CONTRIBUTING.md"),
        page("Decisions", "docs/decisions/README.md"),
        page("Benchmarks", "docs/benchmarks/README.md"),
      ],
    },
  ],
  outline: { level: [2, 3] },
};
