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
  "torch-files",
  "kernels",
  "tensor",
  "optim",
  "nn",
  "distributed",
  "models",
  "onnx",
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
      items: [
        guide("Your first AMP loop", "tutorial"),
        guide("From torch.amp", "from-torch-amp"),
        guide("torch's methods of tensors", "tensor-methods"),
        guide("From apex", "from-apex"),
        guide("From jax-js and TensorFlow.js", "from-jax-js-and-tfjs"),
        guide("Glossary", "glossary"),
      ],
    },
    {
      text: "Guides",
      items: [
        guide("Overflow and underflow", "overflow-and-underflow"),
        guide("Gradient accumulation", "accumulation"),
        guide("Checkpoints", "checkpoints"),
        guide("Raw WebGPU", "raw-webgpu"),
        guide("How a step is planned", "how-a-step-is-planned"),
        guide("The cost of new shapes", "new-shapes"),
        page("Scaling over processes", "docs/scaling.md"),
      ],
    },
    {
      text: "Extend it",
      items: [
        guide("Your own kernel", "own-kernel"),
        guide("Your own op", "own-op"),
        guide("Your own optimizer", "own-optimizer"),
        guide("Your own storage", "own-storage"),
        guide("Your own runner", "own-runner"),
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

/** Navigation of the Chinese pages; what is not translated leads to the English page. */
export const chinese = {
  nav: [
    page("教程", "docs/zh/tutorial.md"),
    page("指南（英文）", "docs/README.md"),
    { text: "API（英文）", link: "/api/index.html", target: "_self" },
  ],
  sidebar: [
    {
      text: "中文",
      items: [
        page("第一个 AMP 训练循环", "docs/zh/tutorial.md"),
        page("Halfstep 是什么", "docs/zh/README.md"),
      ],
    },
    ...english.sidebar,
  ],
  outline: { level: [2, 3], label: "本页目录" },
  docFooter: { prev: "上一页", next: "下一页" },
  darkModeSwitchLabel: "深色模式",
  sidebarMenuLabel: "目录",
  returnToTopLabel: "回到顶部",
  langMenuLabel: "语言",
};

/** Labels of the search on Chinese pages. */
export const chineseSearch = {
  button: { buttonText: "搜索", buttonAriaLabel: "搜索" },
  modal: {
    displayDetails: "显示详情",
    resetButtonTitle: "清除",
    backButtonTitle: "关闭",
    noResultsText: "没有结果：",
    footer: { selectText: "选择", navigateText: "切换", closeText: "关闭" },
  },
};
