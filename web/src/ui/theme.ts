// Colours of the theme, for what is drawn by hand.

import { useEffect, useState } from "react";

/** Changes when the theme does. */
export function useThemeChange(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const changed = () => setCount((before) => before + 1);
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    window.addEventListener("themechange", changed);
    system.addEventListener("change", changed);
    return () => {
      window.removeEventListener("themechange", changed);
      system.removeEventListener("change", changed);
    };
  }, []);
  return count;
}

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function flowColours(): string[] {
  return Array.from({ length: 10 }, (_, index) => colour(`flow-${index}`));
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The colours of text and of what it stands on. */
export function pageColours(): { text: string; surface: string } {
  return { text: colour("text"), surface: colour("surface") };
}
