# Golden numbers for tests/test_msm.py, by R's msm. Run in this folder: Rscript msm_multistate.R
# The panels msm_*.csv are those of msm_panels.py.
library(msm)

control <- list(reltol = 1e-14, maxit = 20000, fnscale = 500)
Q <- rbind(c(0, 0.2, 0, 0.1), c(0.2, 0, 0.2, 0.1), c(0, 0.2, 0, 0.2), c(0, 0, 0, 0))
E <- rbind(c(0, 0.1, 0, 0), c(0.1, 0, 0.1, 0), c(0, 0.1, 0, 0), c(0, 0, 0, 0))
number <- function(x) format(x, digits = 15, trim = TRUE, scientific = FALSE)
vector <- function(x) paste0("[", paste(number(x), collapse = ", "), "]")
table <- function(m) paste0("[", paste(apply(m, 1, vector), collapse = ", "), "]")
read <- function(name) read.csv(paste0("msm_", name, ".csv"))

tell <- function(name, model) {
  q <- qmatrix.msm(model, ci = "delta")
  text <- c(
    paste0("\"minus2loglik\": ", number(model$minus2loglik)),
    paste0("\"generator\": ", table(q$estimates)),
    paste0("\"standard_errors\": ", table(q$SE)),
    paste0("\"p10\": ", table(pmatrix.msm(model, t = 10))),
    paste0("\"sojourn\": ", vector(sojourn.msm(model, ci = "none")[[1]])),
    paste0("\"total_time\": ", vector(totlos.msm(model, start = 1, tot = 20))),
    paste0("\"first_passage\": ", vector(efpt.msm(model, tostate = 4)))
  )
  if (model$emodel$misc) text <- c(text, paste0("\"emission\": ", table(ematrix.msm(model, ci = "none"))))
  paste0("  \"", name, "\": {\n    ", paste(text, collapse = ",\n    "), "\n  }")
}
fit <- function(name, panel, ...) {
  data <- read(panel)
  about <- list(state ~ time, subject = data$id, data = data, qmatrix = Q, method = "BFGS", control = control, ...)
  if (panel == "misread") about$obstrue <- data$known
  about$obstype <- data$obstype
  tell(name, do.call(msm, about))
}

parts <- c(
  fit("snapshots", "snapshots"),
  fit("deaths", "deaths"),
  fit("exact", "exact", exacttimes = TRUE),
  fit("censored", "censored", censor = 99, censor.states = 1:3),
  # rates of 1-2, 1-4, 2-1, 2-3, 2-4, 3-2, 3-4: death at one rate from 1 and 2
  fit("equal", "deaths", qconstraint = c(1, 2, 3, 4, 2, 5, 6)),
  # the rate of 2-1 stays at 0.2
  fit("fixed", "deaths", fixedpars = 3),
  fit("misread", "misread", ematrix = E)
)
version <- paste0("  \"made_by\": \"msm_multistate.R, msm ", packageVersion("msm"), "\"")
writeLines(paste0("{\n", paste(c(version, parts), collapse = ",\n"), "\n}"), "msm_multistate.json")
