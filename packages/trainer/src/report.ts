export { type ClassSectionOptions, classSections } from "./report/class-sections.js";
export { type ReportOptions, type ReportSection, renderReport } from "./report/render-report.js";
export type { Sample, SamplePicture } from "./report/samples.js";
