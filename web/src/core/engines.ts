// Engines by the names of the documentation.

const NAMES: Record<string, string> = { sim: "Simulator", kernel: "Linux kernel", remote: "Real hosts" };

export const engineNamed = (engine = ""): string => NAMES[engine] ?? engine;
