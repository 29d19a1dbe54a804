/** Light, dark, or the system's preference; the choice is remembered on this device. */

export type Theme = "system" | "light" | "dark";

const KEY = "woodrat.theme";
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

class ThemeChoice {
  choice = $state<Theme>("system");
  systemDark = $state(prefersDark.matches);

  get dark(): boolean {
    return this.choice === "dark" || (this.choice === "system" && this.systemDark);
  }

  set(choice: Theme): void {
    this.choice = choice;
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    this.apply();
  }

  apply(): void {
    document.documentElement.dataset.theme = this.dark ? "dark" : "light";
  }
}

export const theme = new ThemeChoice();

export function startTheme(): void {
  try {
    const stored = localStorage.getItem(KEY);
    if (stored === "light" || stored === "dark") theme.choice = stored;
  } catch {
    // Without storage the system decides.
  }
  theme.apply();
  prefersDark.addEventListener("change", (event) => {
    theme.systemDark = event.matches;
    theme.apply();
  });
}
